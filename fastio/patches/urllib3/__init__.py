"""urllib3, beneath requests: only what it documents is used, so none of its code has to be known."""

REQUIRES = "urllib3 >= 1.26, < 3"

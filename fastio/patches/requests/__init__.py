"""requests, by which the clients speak HTTP: only what it documents is used, so none of its code has to be known."""

from fastio.patches import urllib3

REQUIRES = "requests >= 2.25, < 3"

#: For what :mod:`fastio.io.http_bodies` does.
WITH_URLLIB3 = (REQUIRES, urllib3.REQUIRES)

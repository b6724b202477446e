"""urllib3, beneath requests: only what it documents is used, so none of its code has to be known."""

from __future__ import annotations

REQUIRES = "urllib3 >= 1.26, < 3"

"""Patches of python-glanceclient."""

from __future__ import annotations

#: Releases whose code has been read. Within the range the fingerprint of each function decides.
REQUIRES = "python-glanceclient >= 3.6, < 5"

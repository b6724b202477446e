"""Patches of glance-api's own data path."""

from __future__ import annotations

#: Releases whose code has been read. Within the range the fingerprint of each function decides.
REQUIRES = "glance >= 24.0, < 34"

"""Patches of the drivers of glance_store."""

#: Releases whose code has been read. Within the range the fingerprint of each function decides.
REQUIRES = "glance_store >= 3.0, < 6"

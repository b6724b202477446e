"""Patches of glance-api's own data path."""

#: Releases whose code has been read. Within the range the fingerprint of each function decides.
REQUIRES = "glance >= 24.0, < 34"

"""Patches of openstacksdk."""

#: Releases whose code has been read. Within the range the fingerprint of each function decides.
REQUIRES = "openstacksdk >= 1.0, < 5"

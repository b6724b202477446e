"""Patches of urllib3, beneath requests. Patches of clients only use its documented interface."""

#: Releases whose code has been read. Within the range the fingerprint of each function decides.
REQUIRES = "urllib3 >= 1.26, < 3"

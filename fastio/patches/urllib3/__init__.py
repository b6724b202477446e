"""Patches of urllib3, beneath requests. Those of clients only use what it documents."""

#: Releases whose code has been read. Within the range the fingerprint of each function decides.
REQUIRES = "urllib3 >= 1.26, < 3"

"""Patches of python-glanceclient."""

#: Releases whose code has been read. Within the range the fingerprint of each function decides.
REQUIRES = "python-glanceclient >= 3.6, < 5"

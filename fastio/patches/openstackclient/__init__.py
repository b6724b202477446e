"""Patches of python-openstackclient."""

#: Releases whose code has been read. Within the range the fingerprint of each function decides.
REQUIRES = "python-openstackclient >= 6.0, < 11"

"""Patches of oslo.concurrency."""

#: Releases whose code has been read. Within the range the fingerprint of each function decides.
REQUIRES = "oslo.concurrency >= 4.5, < 8"

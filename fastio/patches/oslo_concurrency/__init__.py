"""Patches of oslo.concurrency."""

from __future__ import annotations

#: Releases whose code has been read. Within the range the fingerprint of each function decides.
REQUIRES = "oslo.concurrency >= 4.5, < 8"

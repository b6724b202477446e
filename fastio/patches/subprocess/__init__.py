"""Patches of the standard library's Popen, and eventlet's where it is CPython's code."""

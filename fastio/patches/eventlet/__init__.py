"""Patches of eventlet: its Popen, GreenPipe, sockets and WSGI server."""

#: Releases whose code has been read. Within the range the fingerprint of each function decides.
REQUIRES = "eventlet >= 0.30.2, < 0.42"

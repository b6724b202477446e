"""Patches of eventlet: its Popen, GreenPipe, sockets and WSGI server."""

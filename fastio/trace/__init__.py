"""Tracing where time goes: off unless the setting ``trace`` names a directory.

While it is on, the patches of :mod:`fastio.trace.instrumentation` stand where requests and I/O begin and end, and each
process writes its events to separate files in the directory (:mod:`fastio.trace.recorder`). Nothing outside
of this package knows of it; while it is off none of it is imported.
"""

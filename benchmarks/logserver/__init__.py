"""A small server of logs, with the request path of a study of disk against Swift: it is what is measured.

``python -m benchmarks.logserver`` serves it on eventlet, ``fastio run -m benchmarks.logserver`` with fastio's patches.
A log is looked for on the disk first, then in Swift; ``?source=swift`` leaves out the disk. It is sent in chunks as it
comes.
"""

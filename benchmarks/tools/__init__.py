"""Tools that look after the project: each is started by a command, most of them by an environment of tox.

The tests of the tools stand in ``tests``, as all others do.
"""

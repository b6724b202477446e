"""System calls that fastio makes and upstream does not, each forbidden in turn: what upstream does has to do then.

:mod:`benchmarks.tools.denied.filters` forbids one in the process that asks for it and in all that it starts, with a
filter of its own (seccomp), as systemd and containers do.
"""

#: The environment variable by which the tests are told what is denied.
VARIABLE = "TEST_DENIED"

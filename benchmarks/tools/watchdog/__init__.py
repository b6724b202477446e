"""A time limit for every test: a pytest plugin, and a process beside pytest that ends a run which is stuck."""

#: Seconds that a test may take unless it says otherwise: many times what it needs on a busy machine.
LIMIT = 120.0

#: The environment's own :data:`LIMIT`.
VARIABLE = "TEST_LIMIT"

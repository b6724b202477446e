"""Every property has the hard limit of tests that could hang; tests/hypothesis_profile.py says how long it looks."""

from tests.limits import hard_limit, real_stderr  # noqa: F401

"""Load on storage services: one generator for all suites, on Locust.

A :class:`~benchmarks.load.plan.Plan` says what is done. ``python -m benchmarks.load run PLAN`` does it in one process,
with worker processes, or with workers on other machines, and leaves a directory with every single operation;
``analyze`` makes a result of it, the same as that of all other suites, as often as one likes.

Locust brings gevent, which monkey patches the process that imports it. :mod:`benchmarks.load.runner` and
:mod:`benchmarks.load.users` are imported by the generator's own processes only; all other modules may be imported
anywhere.
"""


class Wrong(ValueError):
    """Input that is not what it should be; the message says what is wrong with it."""


class Failed(RuntimeError):
    """Something that could not be done; the message says why."""

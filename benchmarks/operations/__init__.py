"""The operations that suites measure: the smallest real work of each patch, one call after the other.

An operation is a context manager. It makes the process what a mode says, gets ready, and yields a
:class:`benchmarks.operations.base.Work`. :data:`benchmarks.operations.catalogue.OPERATIONS` has them by name. Suites
run them in fresh processes, or in pairs of processes.
"""

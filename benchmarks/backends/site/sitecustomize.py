"""Imports, at the start of a benchmark's server, the modules beside this one that change it.

Every server has ``patient_sqlite``. ``BENCHMARK_SITE`` may name another one.
"""

import importlib
import os

for name in ("patient_sqlite", os.environ.get("BENCHMARK_SITE")):
    if name:
        importlib.import_module(name)

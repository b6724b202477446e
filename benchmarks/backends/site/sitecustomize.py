"""What a server of the benchmarks runs at its start: the modules beside this one that it is to have.

All have ``patient_sqlite``. ``BENCHMARK_SITE`` names the others, with spaces between them.
"""

import importlib
import os

for name in ("patient_sqlite", *os.environ.get("BENCHMARK_SITE", "").split()):
    importlib.import_module(name)

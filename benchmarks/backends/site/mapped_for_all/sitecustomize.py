"""For a service with fastio: it sends files from a mapping to all clients, not only to those of its own host.

So what this costs can be compared with sendfile() for a client elsewhere.
"""

import runpy
from pathlib import Path
from typing import Any

import wrapt


def _for_all(module: Any) -> None:
    module.is_local = lambda _connection: True


wrapt.register_post_import_hook(_for_all, "fastio.io.file_sending")
# There is one module of this name, and a service with such a database needs that of the other directory too.
runpy.run_path(str(Path(__file__).parents[1] / "patient_sqlite" / "sitecustomize.py"))

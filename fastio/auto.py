"""``import fastio.auto`` calls ``fastio.patch()`` with the settings of the environment, and later of the service."""

import os
import sys

from fastio import service
from fastio.errors import FastioError

try:
    service.start()
except FastioError as error:
    if "uwsgi" not in sys.modules:
        raise
    # uWSGI reports the exception of an import, and would serve without the patches.
    print(f"fastio: {error}", file=sys.stderr, flush=True)
    os._exit(2)

"""Importing this makes urllib3 usable where it was imported before ``eventlet.monkey_patch()`` was called.

A plugin of pytest, such as requests-mock, imports it before tests/conftest.py can monkey patch. The ``SSLContext`` that
it then holds recurses for ever, since its super() asks for the class of that name in ``ssl``, which is the green one.
"""

import ssl
import sys

from tests.conftest import MONKEY_PATCHED

if MONKEY_PATCHED and "urllib3.util.ssl_" in sys.modules:
    sys.modules["urllib3.util.ssl_"].SSLContext = ssl.SSLContext  # type: ignore[attr-defined]

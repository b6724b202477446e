"""For a service with fastio: it sends files from a mapping to all clients, not only to those of its own host.

So what this costs can be compared with sendfile() for a client elsewhere.
"""

from typing import Any

import wrapt


def _for_all(module: Any) -> None:
    module.is_local = lambda _connection: True


wrapt.register_post_import_hook(_for_all, "fastio.io.file_sending")

"""glance-api 32 that also listens with TLS: ``python -m tests.glance.over_tls HOST PORT CERTIFICATE KEY [option ...]``.

Its releases have no options for that any more, but its server has: this is eventlet's documented way to it. The
options are those of glance-api.
"""

import sys
from typing import Any

# Or glance takes the directory above this package for its own checkout, and imports the packages that are there.
sys.argv[0] = "glance-api"

# First, because it monkey patches.
from glance.cmd import api  # noqa: E402

import eventlet.wsgi  # noqa: E402  # isort: skip


def main() -> None:
    host, port, certificate, key = sys.argv[1:5]
    del sys.argv[1:5]
    server = eventlet.wsgi.server

    def both(sock: Any, application: Any, **options: Any) -> None:
        """The worker's server, and beside it the same with TLS."""
        listener = eventlet.listen((host, int(port)))
        wrapped = eventlet.wrap_ssl(listener, certfile=certificate, keyfile=key, server_side=True)
        eventlet.spawn(server, wrapped, application, **options)
        server(sock, application, **options)

    eventlet.wsgi.server = both
    api.main()


if __name__ == "__main__":
    main()

"""nginx: for backends that are one, or have one in front of them."""

import http.client
import os
import ssl
from pathlib import Path

from benchmarks.backends.base import HOST, Backend

INSTALL = "apt-get install --no-install-recommends nginx-light"

_CONF = """\
daemon off;
{user}
worker_processes {workers};
pid {directory}/nginx.pid;
error_log stderr;
events {{ }}
http {{
    access_log off;
    {temporary}
    server {{
        {server}
    }}
}}
"""

#: Of one in front of another server.
_TLS = """\
listen {address}:{port} ssl;
        ssl_certificate {certificate};
        ssl_certificate_key {key};
        client_max_body_size 0;
        location / {{
            proxy_pass http://{host}:{upstream};
            proxy_http_version 1.1;
            proxy_request_buffering off;
            proxy_max_temp_file_size 0;
            proxy_buffer_size 64k;
            proxy_buffers 8 256k;
            proxy_busy_buffers_size 512k;
        }}
"""


def start(backend: Backend, server: str, workers: int = 1) -> None:
    """Start one in the backend's directory.

    :param server: what its ``server`` block has
    """
    directory = backend.directory
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    conf = directory / "nginx.conf"
    conf.write_text(
        _CONF.format(
            # Started by root its workers would change to a user who must not look into this directory.
            user="user root;" if os.getuid() == 0 else "",
            workers=workers,
            directory=directory,
            temporary="\n    ".join(f"{kind}_temp_path {directory}/temporary;" for kind in kinds),
            server=server,
        )
    )
    # -e: not even before it has read the configuration may it write to the system's log.
    backend.spawn("nginx", [backend.find("nginx", INSTALL), "-p", str(directory), "-e", "stderr", "-c", str(conf)])


def start_tls(backend: Backend, upstream: int, path: str, address: str = HOST) -> tuple[int, Path]:
    """Start one that speaks HTTPS in front of a server of this host, and wait until it answers.

    :param upstream: the server's port
    :param path: what the server answers
    :param address: where it listens
    :return: its port, and its certificate
    """
    port = backend.port()
    certificate, key = backend.make_certificate(address)
    start(backend, _TLS.format(
        address=address, port=port, certificate=certificate, key=key, host=HOST, upstream=upstream
    ))  # fmt: skip
    context = ssl.create_default_context(cafile=str(certificate))

    def answers() -> bool:
        connection = http.client.HTTPSConnection(address, port, timeout=10, context=context)
        try:
            connection.request("GET", path)
            # nginx itself says 502 while it does not reach the server.
            return connection.getresponse().status < 500
        finally:
            connection.close()

    backend.wait(answers, "nginx")
    return port, certificate

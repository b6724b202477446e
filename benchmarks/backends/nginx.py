"""nginx: for backends that are one, or have one in front of them."""

import os

from benchmarks.backends.base import HOST, Backend, http_status

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
_PROXY = """\
listen {address}:{port}{tls};
        client_max_body_size 0;
        location / {{
            proxy_pass http://{host}:{upstream};
            proxy_http_version 1.1;
            proxy_request_buffering {buffering};
            {more}
        }}
"""
#: How one with HTTPS hands on what comes.
_STREAMING = """\
proxy_max_temp_file_size 0;
            proxy_buffer_size 64k;
            proxy_buffers 8 256k;
            proxy_busy_buffers_size 512k;"""


def start(backend: Backend, server: str, workers: int = 1) -> None:
    """Start one in the backend's directory.

    :param server: content of its ``server`` block
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


def start_proxy(backend: Backend, upstream: int, path: str, address: str = HOST, tls: bool = True) -> tuple[int, str]:
    """Start one in front of a server of this host, and wait until it answers.

    :param upstream: the server's port
    :param path: whose answer shows that it is ready
    :param address: where it listens
    :param tls: HTTPS, and bodies are handed on as they come; else HTTP, and the whole body of a request is taken first,
        into a file
    :return: its port, and the file of its certificate
    """
    port = backend.port()
    certificate, listen = "", ""
    if tls:
        path_of_it, key = backend.make_certificate(address)
        certificate = str(path_of_it)
        listen = f" ssl; ssl_certificate {certificate}; ssl_certificate_key {key}"
    start(backend, _PROXY.format(
        address=address, port=port, tls=listen, host=HOST, upstream=upstream, buffering="off" if tls else "on",
        more=_STREAMING if tls else "",
    ))  # fmt: skip

    # nginx itself says 502 while it does not reach the server.
    backend.wait(lambda: http_status(port, path, host=address, certificate=certificate) < 500, "nginx")
    return port, certificate

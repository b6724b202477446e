"""nginx: for backends that are one, or have one in front of them."""

import os

from benchmarks.backends.base import Backend

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

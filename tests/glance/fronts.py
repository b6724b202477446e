"""Proxies in front of glance 33, as deployments have them: by HTTP, or by uWSGI's own protocol.

doc/source/operators/glance.rst has the configuration of nginx by HTTP.
"""

import re
from pathlib import Path

import pytest

from benchmarks.backends import nginx
from benchmarks.backends.base import HOST, ROOT, find_program, http_status
from benchmarks.backends.glance import SCHEMA, Service

_TEXT = (ROOT / "doc" / "source" / "operators" / "glance.rst").read_text(encoding="utf-8")
(_DOCUMENTED,) = re.findall(r"^    server \{\n(.*?)^    \}", _TEXT, re.DOTALL | re.MULTILINE)
_DOCUMENTED = _DOCUMENTED.replace("9292", f"{HOST}:PORT").replace("9393", "UPSTREAM")
_PARAMETERS = {
    **{name: f"${name.lower()}" for name in (
        "REQUEST_METHOD", "REQUEST_URI", "QUERY_STRING", "CONTENT_LENGTH", "CONTENT_TYPE", "SERVER_PROTOCOL",
        "SERVER_NAME", "SERVER_PORT",
    )}, "PATH_INFO": "$document_uri", "SCRIPT_NAME": '""',
}  # fmt: skip
_UWSGI_PASS = f"""\
listen {HOST}:PORT; client_max_body_size 0; location / {{
    uwsgi_pass {HOST}:UPSTREAM; uwsgi_buffering off;
    {" ".join(f"uwsgi_param {name} {value};" for name, value in _PARAMETERS.items())}
}}
"""
#: As kolla-ansible and openstack-ansible have it, but for its checks of the servers.
_HAPROXY = f"""\
defaults
    mode http
    timeout connect 10s
    timeout client 60s
    timeout server 60s
listen glance
    bind {HOST}:PORT
    OPTION
    server glance {HOST}:UPSTREAM
"""
_APACHE = """\
ServerName localhost
Listen HOST:PORT
ErrorLog DIRECTORY/logs/apache.log
PidFile DIRECTORY/apache.pid
DefaultRuntimeDir DIRECTORY
User www-data
Group www-data
MODULES
OPTION
ProxyPass / SCHEME://HOST:UPSTREAM/
""".replace("HOST", HOST).replace("MODULES", "\n".join(
    f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so"
    for name in ("mpm_event", "authz_core", "env", "proxy", "proxy_http", "proxy_uwsgi")
))  # fmt: skip
#: Program and configuration of each.
FRONTS = {
    "nginx": ("nginx", _DOCUMENTED.replace("/var/lib/nginx/body", "DIRECTORY/temporary")),
    "uwsgi_pass": ("nginx", _UWSGI_PASS),
    "haproxy": ("haproxy", _HAPROXY),
    "Apache": ("apache2", _APACHE.replace("SCHEME", "http")),
    "mod_proxy_uwsgi": ("apache2", _APACHE.replace("SCHEME", "uwsgi")),
}
#: Those that ask by uWSGI's own protocol.
BY_UWSGI = ("uwsgi_pass", "mod_proxy_uwsgi")


def start(name: str, service: Service, upstream: int, option: str = "") -> int:
    """Start one in front of a port of a service, and wait until it answers; returns its port.

    :param option: a line of its configuration
    """
    program, text = FRONTS[name]
    path = find_program(program)
    if path is None:
        pytest.skip(f"{program} is not installed (apt-get install --no-install-recommends {program})")
    port = service.port()
    directory = service.directory
    values = {"PORT": port, "UPSTREAM": upstream, "DIRECTORY": directory, "OPTION": option}
    text = re.sub(rf"\b({'|'.join(values)})\b", lambda match: str(values[match[0]]), text)
    if program == "nginx":
        nginx.start(service, text)
    else:
        configuration = Path(directory, f"{program}.cfg")
        configuration.write_text(text)
        own = ["-D", "FOREGROUND"] if program == "apache2" else ["-db"]
        service.spawn(program, [path, "-f", str(configuration), *own])
    service.wait(lambda: http_status(port, SCHEMA) == 200, name)
    return port

"""OpenStack Swift: proxy, account, container and object server, with tempauth.

Swift is a pip package; its servers run from this Python's environment, or from the one that the environment variable
``BENCHMARK_SWIFT`` names (a directory with ``bin/swift-proxy-server``). One replica on one device; the device needs a
file system with extended attributes. Its users talk Keystone v3 or v1 (tempauth's own): both are served, because
glance_store 5 and later know v3 only. No memcached: the proxy keeps what it would hold (:mod:`.swift_filters`), which
is why there is one proxy process.
"""

import errno
import json
import os
import pwd
import urllib.request
from pathlib import Path
from typing import Any

from benchmarks.backends import nginx
from benchmarks.backends.base import EXTRA, FAR, HOST, ON_OFF, ROOT, Backend, BackendError, find_program, http_status
from benchmarks.backends.swift_filters import PATCHED_PATH

#: Names the environment whose Swift is used, if it is not this Python's.
VARIABLE = "BENCHMARK_SWIFT"

SERVERS = ("account", "container", "object")
ACCOUNT, USER, KEY = "test", "tester", "testing"

# RingBuilder's arguments: part power, replicas, hours between moves of a partition. One process for the three rings:
# the command line takes three for each, half of the time to start.
_RINGS = """
import json, sys
from swift.common.ring import RingBuilder
for name, (directory, port) in json.loads(sys.argv[1]).items():
    builder = RingBuilder(4, 1, 0)
    builder.add_dev({"region": 1, "zone": 1, "ip": "127.0.0.1", "port": port, "device": "d1", "weight": 1})
    builder.rebalance()
    builder.get_ring().save(f"{directory}/{name}.ring.gz")
"""

_SWIFT_CONF = """\
[swift-hash]
swift_hash_path_prefix = benchmark
swift_hash_path_suffix = benchmark
[storage-policy:0]
name = gold
default = yes
"""

# The time-outs: on a busy machine the servers may be slow to answer each other. An object for which the container
# server takes longer than container_update_timeout (a second, without ours) is not in a listing at once.
_DEFAULTS = """\
[DEFAULT]
swift_dir = {etc}
bind_ip = 127.0.0.1
bind_port = {port}
workers = {workers}
user = {user}
log_level = WARNING
conn_timeout = 20
node_timeout = 60
container_update_timeout = 60
"""

_STORAGE_CONF = (
    _DEFAULTS
    + """\
devices = {devices}
mount_check = false
disable_fallocate = true
recon_cache_path = {cache}
[pipeline:main]
pipeline = {patched}{name}-server
[app:{name}-server]
use = egg:swift#{name}
disk_chunk_size = {disk_chunk_size}
network_chunk_size = {network_chunk_size}
"""
)

# error_suppression_interval: after eleven errors the proxy leaves a server alone (for a minute, without ours). There is
# no other one here: each request of that minute would fail, however soon the server has come back.
_PROXY_CONF = (
    _DEFAULTS
    + """\
[pipeline:main]
pipeline = {patched}catch_errors healthcheck cache keystone tempauth dlo slo proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
object_chunk_size = {object_chunk_size}
client_chunk_size = {client_chunk_size}
error_suppression_interval = 0
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:healthcheck]
use = egg:swift#healthcheck
[filter:cache]
use = call:benchmarks.backends.swift_filters:cache
[filter:keystone]
use = call:benchmarks.backends.swift_filters:keystone
[filter:tempauth]
use = egg:swift#tempauth
token_life = {token_life}
user_{account}_{who} = {key} .admin
[filter:dlo]
use = egg:swift#dlo
[filter:slo]
use = egg:swift#slo
"""
)


# With fastio each server says which patches are in effect in it.
_PATCHED = """\
[filter:patched]
use = call:benchmarks.backends.swift_filters:patched
"""


class Swift(Backend):
    """One Swift node."""

    name = "swift"
    driver = "swift"
    #: chunk sizes of the servers in bytes, Swift's own names and defaults; object server processes; seconds that a
    #: token is good for; ``fastio``: ``on`` or ``off``, in all servers, whose environment needs what fastio needs;
    #: ``tls``: 1 for HTTPS as well, from nginx in front of the proxy
    parameters = {
        "disk_chunk_size": 65536,
        "network_chunk_size": 65536,
        "object_chunk_size": 65536,
        "client_chunk_size": 65536,
        "workers": 1,
        "token_life": 86400,
        "fastio": "off",
        "tls": 0,
        **FAR,
    }
    choices = {"fastio": ON_OFF}

    def why_not(self) -> str:
        if _program("swift-proxy-server") is None:
            where = os.environ.get(VARIABLE)
            where = f"{VARIABLE}={where} has no bin/swift-proxy-server" if where else "OpenStack Swift is not installed"
            return f"swift: {where}; install it with: {EXTRA}  (or: pip install swift)"
        return ""

    def launch(self) -> None:
        fast = self.chosen["fastio"] == "on"
        etc, devices, cache = (self.directory / name for name in ("etc", "devices", "cache"))
        for path in (etc, devices / "d1", cache):
            path.mkdir(parents=True)
        _require_attributes(devices / "d1")
        ports = {name: self.port() for name in (*SERVERS, "proxy")}
        self._port = ports["proxy"]
        (etc / "swift.conf").write_text(_SWIFT_CONF)
        common = {
            **self.chosen, "etc": etc, "devices": devices, "cache": cache, "user": pwd.getpwuid(os.getuid()).pw_name,
            "account": ACCOUNT, "who": USER, "key": KEY, "patched": "patched " if fast else "",
        }  # fmt: skip
        for name, port in ports.items():
            workers = self.chosen["workers"] if name == "object" else 1
            template = _PROXY_CONF if name == "proxy" else _STORAGE_CONF
            text = template.format(**{**common, "name": name, "port": port, "workers": workers})
            (etc / f"{name}.conf").write_text(text + (_PATCHED if fast else ""))
        self._build_rings({name: ports[name] for name in SERVERS})
        for name in ports:
            # The checkout has the proxy's filters and fastio, and is only on the path of who needs them.
            environment = {"PYTHONWARNINGS": "ignore"}
            if fast or name == "proxy":
                environment["PYTHONPATH"] = str(ROOT)
            start = [_python(), "-m", "fastio", "run", "--"] if fast else []
            command = [_program(f"swift-{name}-server") or "", str(etc / f"{name}.conf"), "-v"]
            self.spawn(name, [*start, *command], environment)
        for name in SERVERS:
            port = ports[name]
            self.wait(lambda port=port: http_status(port, "/recon/version") == 200 or True, f"the {name} server")  # type: ignore[misc]
        self.wait(lambda: http_status(self._port, "/healthcheck") == 200, "the proxy")
        # The first request makes the account.
        self.wait(self._logged_in, "the proxy's authentication")
        self._port = self.far_port(self._port)
        self._patched = {name: _patched(port) for name, port in ports.items()} if fast else {}
        self._tls: dict[str, str] = {}
        if self.chosen["tls"]:
            port, certificate = nginx.start_proxy(self, self._port, "/healthcheck")
            self._tls = {"https_url": f"https://{HOST}:{port}", "certificate": certificate}

    def options(self) -> dict[str, Any]:
        return {
            "swift_store_auth_version": "3",
            "swift_store_auth_address": f"http://{HOST}:{self._port}/v3",
            "swift_store_user": f"{ACCOUNT}:{USER}",
            "swift_store_key": KEY,
            "swift_store_container": "images",
            "swift_store_create_container_on_put": True,
            "swift_store_endpoint_type": "publicURL",
        }

    def details(self) -> dict[str, Any]:
        return {
            "url": f"http://{HOST}:{self._port}",
            "auth_v1": f"http://{HOST}:{self._port}/auth/v1.0",
            "auth_v3": f"http://{HOST}:{self._port}/v3",
            "user": f"{ACCOUNT}:{USER}",
            "key": KEY,
            "container": "images",
            "patched": self._patched,
            **self._tls,
        }

    def _build_rings(self, ports: dict[str, int]) -> None:
        rings = {name: (str(self.directory / "etc"), port) for name, port in ports.items()}
        self.run([_python(), "-W", "ignore", "-c", _RINGS, json.dumps(rings)])

    def _logged_in(self) -> bool:
        headers = {"X-Auth-User": f"{ACCOUNT}:{USER}", "X-Auth-Key": KEY}
        return http_status(self._port, "/auth/v1.0", headers=headers) == 200


def _program(name: str) -> str | None:
    """A program of the chosen Swift; None if it is not there."""
    chosen = os.environ.get(VARIABLE)
    if chosen is None:
        return find_program(name)
    path = Path(chosen) / "bin" / name
    return str(path) if os.access(path, os.X_OK) else None


def _python() -> str:
    """The Python of the chosen Swift."""
    return str(Path(_program("swift-proxy-server") or "").parent / "python")


def _patched(port: int) -> list[str]:
    """The patches of fastio that are in effect in a server."""
    with urllib.request.urlopen(f"http://{HOST}:{port}{PATCHED_PATH}", timeout=60) as answer:
        return json.load(answer)


def _require_attributes(path: Path) -> None:
    """Swift keeps an object's metadata in extended attributes of its file."""
    try:
        os.setxattr(path, "user.swift.metadata", b"?")
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
        raise BackendError(
            f"{path.parent.parent} is on a file system without user extended attributes; choose another directory"
        ) from error
    os.removexattr(path, "user.swift.metadata")

"""Ceph: a monitor and an OSD with a pool for the rbd store, from Debian's packages.

No manager (I/O needs none), no cephx, one replica; objects in memory. The client is Debian's python3-rbd,
which is built for Debian's Python: any other build of the same version can import it, no other version can.
"""

import contextlib
import importlib
import importlib.util
import sys
import sysconfig
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.backends.base import HOST, Backend

INSTALL = "apt-get install --no-install-recommends ceph-mon ceph-osd ceph-common python3-rbd python3-rados"

DEBIAN_MODULES = Path("/usr/lib/python3/dist-packages")
POOL = "images"

# The paxos settings: a change of the cluster map, such as a snapshot, is otherwise held back for a second, to be
# proposed with others; every add() makes a snapshot and every delete() removes one.
_CONF = """\
[global]
fsid = {fsid}
mon initial members = a
mon host = [v2:{host}:{port},v1:{host}:{old_port}]
public addr = {host}
auth cluster required = none
auth service required = none
auth client required = none
admin socket =
osd pool default size = 1
osd pool default min size = 1
osd crush chooseleaf type = 0
[mon]
mon data = {directory}/mon
mon allow pool size one = true
mon warn on pool no redundancy = false
mon data avail crit = 1
mon data avail warn = 2
paxos propose interval = 0.05
paxos min wait = 0.01
log file = {directory}/logs/mon-log.log
pid file = {directory}/mon.pid
[osd]
osd data = {directory}/osd
osd objectstore = memstore
memstore device bytes = {size}
osd scrub load threshold = 0
osd heartbeat grace = 60
osd mon shutdown timeout = 0.1
log file = {directory}/logs/osd-log.log
pid file = {directory}/osd.pid
"""


class Ceph(Backend):
    """One small cluster."""

    name = "ceph"
    driver = "rbd"
    programs = ("ceph-mon", "ceph-osd", "monmaptool", "ceph", "rbd")
    install = INSTALL
    #: ``size``: bytes of memory that the OSD has room for
    parameters = {"size": 4 << 30}

    def why_not(self) -> str:
        if missing := super().why_not():
            return missing
        for name in ("rados", "rbd"):
            if name not in sys.modules and importlib.util.find_spec(name) is None and not _library(name).exists():
                built = ", ".join(path.name for path in DEBIAN_MODULES.glob(f"{name}.*.so"))
                reason = f"is built for another Python ({built})" if built else "is not installed"
                return f"ceph: python3-{name} {reason}; install with: {INSTALL}  (and use Debian's Python version)"
        return ""

    def launch(self) -> None:
        fsid, osd = str(uuid.uuid4()), str(uuid.uuid4())
        port, old_port = self.port(), self.port()
        for name in ("mon", "osd"):
            (self.directory / name).mkdir()
        conf = self.conf
        conf.write_text(
            _CONF.format(**self.chosen, fsid=fsid, host=HOST, port=port, old_port=old_port, directory=self.directory)
        )
        monmap = str(self.directory / "monmap")
        addresses = f"[v2:{HOST}:{port},v1:{HOST}:{old_port}]"
        self._command("monmaptool", "--create", "--fsid", fsid, "--addv", "a", addresses, monmap)
        self._command("ceph-mon", "-c", str(conf), "--mkfs", "-i", "a", "--monmap", monmap)
        self.spawn("mon", [self.find("ceph-mon"), "-c", str(conf), "-f", "-i", "a"])
        # The command waits for the monitor.
        number = self._ceph("osd", "new", osd).strip()
        self._command("ceph-osd", "-c", str(conf), "--mkfs", "-i", number, "--osd-uuid", osd)
        self.spawn("osd", [self.find("ceph-osd"), "-c", str(conf), "-f", "-i", number])
        self._ceph("osd", "pool", "create", POOL, "8", "8")
        # This one waits for the OSD.
        self._command("rbd", "-c", str(conf), "pool", "init", POOL)

    @property
    def conf(self) -> Path:
        """Return the access of clients."""
        return self.directory / "ceph.conf"

    def options(self) -> dict[str, Any]:
        return {"rbd_store_ceph_conf": str(self.conf), "rbd_store_pool": POOL, "rbd_store_user": "admin"}

    def details(self) -> dict[str, Any]:
        return {"conf": str(self.conf), "pool": POOL}

    @classmethod
    @contextlib.contextmanager
    def in_client(cls, access: Mapping[str, Any]) -> Iterator[None]:
        """Debian's modules are importable; they stay so, an extension module cannot be unloaded."""
        modules = [import_binding(name) for name in ("rados", "rbd")]
        driver: Any = sys.modules.get("glance_store._drivers.rbd")
        if driver is not None and driver.rbd is None:
            # It was imported when there was none.
            driver.rados, driver.rbd = modules
        yield

    def _ceph(self, *arguments: str) -> str:
        return self._command("ceph", "-c", str(self.conf), *arguments)

    def _command(self, program: str, *arguments: str) -> str:
        return self.run([self.find(program), *arguments], timeout=self.patience)


def import_binding(name: str) -> ModuleType:
    """The module ``rados`` or ``rbd``: this environment's, else Debian's, which is on no virtual environment's path.

    Raises ImportError if it cannot be loaded.
    """
    if name in sys.modules or importlib.util.find_spec(name) is not None:
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(name, _library(name))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _library(name: str) -> Path:
    return DEBIAN_MODULES / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}"

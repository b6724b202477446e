"""A sandbox of bubblewrap's (bwrap(1), https://github.com/containers/bubblewrap) for each process.

A process sees the system's programs and libraries, this checkout's code, the interpreters and its own environment, all
read-only. It has what it is given to write to, and a ``/tmp`` and a ``/dev/shm`` of its own. Processes, IPC, host name
and network are its own, too; of the network there is only loopback. Where root validates, it runs as a user that nobody
else is. Elsewhere it is in a user namespace, with such an id, and no more rights outside of it than its caller.
"""

import contextlib
import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.engine import ROOT
from benchmarks.harness.worker import CACHE_VARIABLE
from benchmarks.tools.pythons import Python
from benchmarks.tools.upstream.runner import Launcher
from benchmarks.validate.variants import CANDIDATE, FASTIO, STOCK, Variant

from .limits import LIMITS, Limits

ENTER = Path(__file__).with_name("enter.py")
#: Its user ids, one for each variant so that none uses up what another one may have, and one for all of them together.
UIDS = {STOCK: 59_990, CANDIDATE: 59_991, FASTIO: 59_992, "": 59_993}
USER = HOST = "isolated"
#: Seconds for a trial.
TRIAL_LIMIT = 60

#: Of the system; a link stays one.
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
#: Of ``/etc``: what programs need, and nothing that somebody has configured for this machine.
_ETC = (
    "alternatives", "ca-certificates", "crypto-policies", "debian_version", "gai.conf", "host.conf", "ld.so.cache",
    "ld.so.conf", "ld.so.conf.d", "localtime", "magic", "mime.types", "os-release", "pki/tls/certs", "protocols",
    "services", "ssl/certs", "ssl/openssl.cnf", "timezone",
)  # fmt: skip
#: Of this checkout.
_CODE = ("benchmarks", "fastio", "doc/source/examples")
#: Instead of the machine's own.
_FILES = {
    "hosts": f"127.0.0.1 localhost {HOST}\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
    # Nobody answers there, at once.
    "resolv.conf": "nameserver 127.0.0.1\n",
}
#: What a process inherits of the environment, beside what it is given for itself. Anything else may be a secret.
_KEPT = frozenset({
    "EVENTLET_TESTS", "LANG", "LANGUAGE", "PATH", "TERM", "TEST_EVENTLET", "TZ",
})  # fmt: skip
#: What steers Python has been left out before, or is given on purpose.
_KEPT_PREFIXES = ("FASTIO_", "LC_", "PYTHON")


class Refused(Exception):
    """There can be no sandbox here; the message says why."""


def make(pythons: Sequence[Python], cache: Path, trees: Sequence[Path], limits: Limits = LIMITS) -> "Bubblewrap":
    """The sandboxes of a validation.

    :param pythons: that the environments are made of
    :param cache: where the environments and the sources of releases are kept
    :param trees: source trees that candidates' tests are in
    :raises Refused: if bubblewrap is not installed, or this kernel, container or user may not use it
    """
    program = shutil.which("bwrap")
    if program is None:
        raise Refused("bwrap is not installed (apt-get install bubblewrap)")
    made = Bubblewrap(program, pythons, cache, trees, limits)
    made.try_out()
    return made


class Bubblewrap:
    """The sandboxes of a validation."""

    def __init__(
        self, program: str, pythons: Sequence[Python], cache: Path, trees: Sequence[Path], limits: Limits
    ) -> None:
        """As :func:`make`.

        :param program: bwrap
        """
        self.limits = limits
        self._program = program
        self._python = os.path.realpath(sys.executable)
        self._cache = cache.resolve()
        #: where links in an environment may lead: they may be the candidate's own
        self._roots = [self._cache, *(tree.resolve() for tree in trees)]
        prefixes = {Path(sys.base_prefix), Path(sys.prefix), Path(self._python).parents[1]}
        for python in pythons:
            prefixes |= {Path(python.prefix), Path(os.path.realpath(python.path)).parents[1]}
        self._code = [ROOT / part for part in _CODE] + sorted(
            prefix for prefix in prefixes if not any(prefix.is_relative_to(each) for each in _SYSTEM)
        )

    @functools.cached_property
    def version(self) -> str:
        """As in ``bubblewrap 0.8.0``."""
        done = subprocess.run([self._program, "--version"], capture_output=True, text=True, timeout=TRIAL_LIMIT)
        return done.stdout.strip() or "bubblewrap"

    def launcher(self, *variants: Variant) -> "SandboxLauncher":
        """Starts processes that see the environments of these variants."""
        name = variants[0].name if len(variants) == 1 else ""
        return SandboxLauncher(self, UIDS[name], [each.environment.directory for each in variants])

    def try_out(self) -> None:
        """:raises Refused: if a process cannot be run in a sandbox"""
        command = self.command([self._python, "-IS", "-c", ""], UIDS[""], Path("/"))
        try:
            done = subprocess.run(
                command, env=environment(dict(os.environ)), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                timeout=TRIAL_LIMIT,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Refused(f"{self._program} does not run: {error}") from None
        if done.returncode:
            said = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
            raise Refused(f"{self._program} can make no sandbox here: {said[0]}")

    def command(
        self, command: Sequence[str], uid: int, directory: Path, environments: Sequence[Path] = (),
        readable: Sequence[Path] = (), writable: Sequence[Path] = (),
    ) -> list[str]:  # fmt: skip
        """The command that runs a command in a sandbox.

        :param uid: of the process
        :param directory: that it runs in
        :param environments: their directories
        :param readable: what else it sees, and what links in directories of tests lead to
        """
        root = os.getuid() == 0
        given = json.dumps({"limits": self.limits.resources(), "uid": uid if root else None})
        # Root keeps what it takes to become another user, and loses it with that.
        user = ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
        if not root:
            user = ["--unshare-user", "--uid", str(uid), "--gid", str(uid)]
        seen = [*self._code, *environments, *readable, *self._led_to(readable)]
        return [
            self._program, "--die-with-parent", "--new-session", "--unshare-pid", "--unshare-ipc", "--unshare-net",
            "--unshare-uts", "--unshare-cgroup-try", "--hostname", HOST, *user, *self._system(uid),
            *_parents([*seen, *writable]), *_each("--ro-bind", seen), *_each("--bind", writable), "--remount-ro", "/",
            "--chdir", str(directory), "--", self._python, "-IS", str(ENTER), given, *command,
        ]  # fmt: skip

    def _system(self, uid: int) -> Iterator[str]:
        for name in _SYSTEM:
            if os.path.islink(name):
                yield from ("--symlink", os.readlink(name), name)
            elif os.path.isdir(name):
                yield from ("--ro-bind", name, name)
        yield from ("--proc", "/proc", "--dev", "/dev")
        for place in ("/dev/shm", "/tmp"):
            yield from ("--perms", "1777", "--size", str(self.limits.temporary), "--tmpfs", place)
        yield from _parents([Path("/etc", name) for name in _ETC])
        for name in _ETC:
            yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
        for name, file in self._files(uid):
            yield from ("--ro-bind", str(file), f"/etc/{name}")

    def _files(self, uid: int) -> Iterator[tuple[str, Path]]:
        """The files of ``/etc`` that are the sandbox's own, and where they are kept."""
        users = f"root:x:0:0::/:/bin/false\n{USER}:x:{uid}:{uid}::/tmp:/bin/sh\n"
        groups = f"root:x:0:\n{USER}:x:{uid}:\n"
        directory = self._cache / "isolation"
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in {**_FILES, f"passwd-{uid}": users, f"group-{uid}": groups}.items():
            file = directory / name
            if not file.exists() or file.read_text() != text:
                partial = file.with_name(f"{name}.{os.getpid()}")
                partial.write_text(text)
                partial.chmod(0o644)
                os.replace(partial, file)
            yield name.partition("-")[0], file

    def _led_to(self, directories: Sequence[Path]) -> Iterator[Path]:
        """What links in the directories of tests lead to, where they may."""
        for directory in directories:
            for place, directories_in, files in os.walk(directory):
                for found in (Path(place, name) for name in (*directories_in, *files)):
                    if found.is_symlink() and any(map(found.resolve().is_relative_to, self._roots)):
                        yield found.resolve()


class SandboxLauncher(Launcher):
    """Starts each process in a sandbox of its own."""

    def __init__(self, sandboxes: Bubblewrap, uid: int, environments: Sequence[Path]) -> None:
        """
        :param environments: their directories
        """
        self._sandboxes = sandboxes
        self._uid = uid
        self._environments = environments

    def start(
        self, command: Sequence[str], directory: Path, env: dict[str, str], *, readable: Sequence[Path],
        writable: Sequence[Path], **options: Any,
    ) -> subprocess.Popen[bytes]:  # fmt: skip
        if os.getuid() == 0:
            for place in writable:
                os.chown(place, self._uid, self._uid, follow_symlinks=False)
        whole = self._sandboxes.command(command, self._uid, directory, self._environments, readable, writable)
        return subprocess.Popen(whole, cwd="/", env=environment(env), start_new_session=True, **options)

    def signal(self, process: subprocess.Popen[bytes], number: int) -> None:
        # The process is bwrap; its child is the first one in the sandbox, and the child of that the command.
        pid = process.pid
        for _ in range(2):
            try:
                pid = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
            except (OSError, IndexError):
                return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def environment(env: dict[str, str]) -> dict[str, str]:
    """What a process in a sandbox is given of an environment: what steers it, and what is not this process's own."""
    kept = {
        name: value for name, value in env.items()
        if name in _KEPT or name.startswith(_KEPT_PREFIXES) or os.environ.get(name) != value
    }  # fmt: skip
    own = kept.setdefault("TMPDIR", "/tmp")
    return {**kept, "HOME": "/tmp", "USER": USER, "LOGNAME": USER, CACHE_VARIABLE: own}


def _parents(paths: Sequence[Path]) -> Iterator[str]:
    """The directories above, which bwrap would make for its caller alone."""
    found = {parent for path in paths for parent in path.parents}
    for parent in sorted(found, key=lambda path: len(path.parts)):
        yield from ("--perms", "0755", "--dir", str(parent))


def _each(option: str, paths: Sequence[Path]) -> Iterator[str]:
    for path in dict.fromkeys(paths):
        yield from (option, str(path), str(path))

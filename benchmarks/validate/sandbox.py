"""The reach of a candidate's code: a sandbox of bubblewrap's, or all that the user of the validation can reach.

A process in the sandbox sees the system's programs and libraries, this checkout's code, the interpreters and its own
environment, all read-only, and an own ``/tmp`` and ``/dev/shm``. It can write only to these and to a directory of its
run. Links lead to nothing else. Processes, IPC, host name and network are its own, too; of the network there is only
loopback. The kernel's keyrings are out of reach. Where root validates, it runs as an otherwise unused user; elsewhere
in a user namespace.

In it are the suites, the benchmarks with their servers, and the look at what is imported: all variants alike. Outside
are git and the installer, and with it the build of a candidate that has to be built.
"""

import contextlib
import getpass
import os
import platform
import pwd
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.engine import ROOT
from benchmarks.harness.worker import CACHE_VARIABLE
from benchmarks.tools.pythons import Python
from benchmarks.tools.upstream.runner import Launcher

from .environments import Variant
from .errors import ValidateError

AUTO, BUBBLEWRAP, NONE = "auto", "bubblewrap", "none"
ALLOWED = (AUTO, BUBBLEWRAP, NONE)
#: The user's id in it.
UID = 59_990
USER = HOST = "isolated"
#: Seconds for a trial.
TRIAL_LIMIT = 60
#: Bytes of ``/tmp`` and of ``/dev/shm``.
TEMPORARY = 2 << 30

#: Of the system; a link stays one.
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
#: Of ``/etc``: files that programs need, and no configuration of this machine.
_ETC = (
    "alternatives", "ca-certificates", "crypto-policies", "debian_version", "gai.conf", "host.conf", "ld.so.cache",
    "ld.so.conf", "ld.so.conf.d", "localtime", "magic", "mime.types", "os-release", "pki/tls/certs", "protocols",
    "services", "ssl/certs", "ssl/openssl.cnf", "timezone",
)  # fmt: skip
#: Of this checkout.
_CODE = ("benchmarks", "fastio", "doc/source/examples")
#: Of the installation of a Python, or of a virtual environment.
_INSTALLATION = ("bin", "lib", "lib64", "pyvenv.cfg")
#: Variables that a process inherits, beside those that are set for it. Anything else may be a secret.
_KEPT = frozenset({"EVENTLET_TESTS", "LANG", "LANGUAGE", "PATH", "TERM", "TEST_EVENTLET", "TZ"})
#: Variables that steer Python have been left out before, or are given on purpose.
_KEPT_PREFIXES = ("FASTIO_", "LC_", "PYTHON")
#: Machine -> AUDIT_ARCH of seccomp(2), and the numbers of add_key, request_key and keyctl.
_KEYRING_CALLS = {"x86_64": (0xC000003E, 248, 249, 250), "aarch64": (0xC00000B7, 217, 218, 219)}


class Refused(Exception):
    """There can be no sandbox here; the message says why."""


class Isolation:
    """How the code of the variants runs: in a sandbox, or as this user for a ``reason``."""

    def __init__(self, sandbox: "Bubblewrap | None" = None, reason: str = "") -> None:
        self.sandbox = sandbox
        self.reason = reason

    def launcher(self, *variants: Variant) -> Launcher:
        """Starts processes that run code of these variants, and of no other."""
        return SandboxLauncher(self.sandbox, *variants) if self.sandbox else Launcher()

    def line(self, candidate: bool, installed: bool) -> str:
        """Describe the isolation for a reader of the verdict, in one line.

        :param candidate: whether there is one, beside stock and fastio
        :param installed: whether the installer was given it
        """
        whose = "the candidate's code" if candidate else "the compared code"
        user = f"this user ({user_name()}) with this network"
        if self.sandbox is None:
            return f"isolation: none, so {whose} ran as {user}: {self.reason}"
        outside = f"; outside, as {user}: the candidate's build and installation" if candidate and installed else ""
        what = "no network, no keyrings, files read-only but their own"
        return f"isolation: {self.sandbox.version}, for all variants: {what}{outside}"

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        used, version = (BUBBLEWRAP, self.sandbox.version) if self.sandbox else (NONE, "")
        return {"used": used, "version": version, "reason": self.reason}


def choose(asked: str, python: Python) -> Isolation:
    """The isolation that is asked for.

    :param asked: one of :data:`ALLOWED`
    :param python: that the environments are made of
    :raises ValidateError: if it is ``bubblewrap``, and that is not possible here, or if the Python cannot be shown
        without more than itself
    """
    if asked == NONE:
        return Isolation(reason="--isolation none was asked for")
    try:
        return Isolation(Bubblewrap(python))
    except Refused as refused:
        if asked == AUTO:
            return Isolation(reason=str(refused))
        raise ValidateError(
            f"--isolation {asked}: {refused}; allowed are {', '.join(ALLOWED)}: auto does without it where it has to, "
            "as the verdict then reports"
        ) from None


def user_name() -> str:
    """The name of the user who runs the validation."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


class Bubblewrap:
    """bwrap(1), and what all of its sandboxes have in common."""

    def __init__(self, python: Python) -> None:
        """
        :raises Refused: if bubblewrap is not installed, or this kernel, container or user may not use it
        :raises ValidateError: as :func:`choose`
        """
        if shutil.which("bwrap") is None:
            raise Refused("bwrap is not installed (apt-get install bubblewrap)")
        if platform.machine() not in _KEYRING_CALLS:
            raise Refused(f"on {platform.machine()} keyrings cannot be kept from it")
        prefixes = {Path(sys.prefix), Path(sys.base_prefix), Path(python.prefix)}
        prefixes |= {_prefix(Path(os.path.realpath(each))) for each in (sys.executable, python.path)}
        packages = {Path(each) for each in sys.path if Path(each).name in ("site-packages", "dist-packages")}
        self._code = [*(ROOT / part for part in _CODE), *(part for each in sorted(prefixes) for part in _parts(each))]
        self._code += sorted(each for each in packages if each.is_dir() and not any(map(each.is_relative_to, _SYSTEM)))
        done = self._try(["bwrap", "--version"])
        #: as in ``bubblewrap 0.8.0``
        self.version = done.stdout.strip() or "bubblewrap"
        with self.command(["true"], Path("/")) as (command, descriptors):
            done = self._try(command, pass_fds=descriptors)
        if done.returncode:
            said = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
            raise Refused(f"bwrap can make no sandbox here: {said[0]}")

    @staticmethod
    def _try(command: Sequence[str], **options: Any) -> "subprocess.CompletedProcess[str]":
        try:
            return subprocess.run(
                command, env=environment(dict(os.environ)), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                timeout=TRIAL_LIMIT, cwd="/", **options,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Refused(f"{command[0]} does not run: {error}") from None

    @contextlib.contextmanager
    def command(
        self, command: Sequence[str], directory: Path, readable: Sequence[Path] = (), writable: Sequence[Path] = ()
    ) -> Iterator[tuple[list[str], list[int]]]:
        """The command that runs a command in a sandbox, and the descriptors that it needs.

        :param directory: that it runs in
        """
        user = ["--unshare-user", "--uid", str(UID), "--gid", str(UID)]
        become: list[str] = []
        if os.getuid() == 0:
            # The privilege to become another user is lost with that.
            user = ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
            become = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", "--inh-caps=-all", "--"]
        seen = [*self._code, *readable]
        files = {
            "hosts": f"127.0.0.1 localhost {HOST}\n::1 localhost\n",
            "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
            # Connections there fail at once.
            "resolv.conf": "nameserver 127.0.0.1\n",
            "passwd": f"root:x:0:0::/:/bin/false\n{USER}:x:{UID}:{UID}::/tmp:/bin/sh\n",
            "group": f"root:x:0:\n{USER}:x:{UID}:\n",
        }
        with contextlib.ExitStack() as stack:
            descriptors = {name: _memory(stack, text.encode()) for name, text in files.items()}
            filtering = _memory(stack, _no_keyrings(*_KEYRING_CALLS[platform.machine()]))
            own = [part for name, fd in descriptors.items()
                   for part in ("--perms", "0644", "--ro-bind-data", str(fd), f"/etc/{name}")]  # fmt: skip
            yield [
                "bwrap", "--die-with-parent", "--new-session", "--unshare-pid", "--unshare-ipc", "--unshare-net",
                "--unshare-uts", "--unshare-cgroup-try", "--hostname", HOST, *user, *_system(), *own,
                *_parents([*seen, *writable]),
                *_each("--ro-bind", seen), *_each("--bind", writable), "--remount-ro", "/",
                "--seccomp", str(filtering), "--chdir", str(directory), "--", *become, *command,
            ], [*descriptors.values(), filtering]  # fmt: skip


class SandboxLauncher(Launcher):
    """Starts each process in a separate sandbox, which has the environments of some variants."""

    def __init__(self, sandboxes: Bubblewrap, *variants: Variant) -> None:
        self._sandboxes = sandboxes
        self._environments = [each.environment.directory for each in variants]

    def start(
        self, command: Sequence[str], directory: Path, env: dict[str, str], *, readable: Sequence[Path],
        writable: Sequence[Path], **options: Any,
    ) -> subprocess.Popen[bytes]:  # fmt: skip
        if os.getuid() == 0:
            for place in writable:
                os.chown(place, UID, UID, follow_symlinks=False)
        seen = [*self._environments, *readable]
        with self._sandboxes.command(command, directory, seen, writable) as (whole, descriptors):
            return subprocess.Popen(
                whole, cwd="/", env=environment(env), start_new_session=True, pass_fds=descriptors, umask=0o022,
                **options,
            )  # fmt: skip


def environment(env: dict[str, str]) -> dict[str, str]:
    """Return an environment's variables for a sandboxed process: those that steer it, or are not this process's."""
    kept = {
        name: value for name, value in env.items()
        if name in _KEPT or name.startswith(_KEPT_PREFIXES) or os.environ.get(name) != value
    }  # fmt: skip
    own = kept.setdefault("TMPDIR", "/tmp")
    return {**kept, "HOME": "/tmp", "USER": USER, "LOGNAME": USER, CACHE_VARIABLE: own}


def _prefix(executable: Path) -> Path:
    """Where a Python is installed.

    :raises ValidateError: if it is not: what lies beside it may be anything
    """
    if executable.parent.name != "bin":
        raise ValidateError(
            f"--python {executable}: allowed in the sandbox is a Python that is installed as PREFIX/bin/python (make "
            f"install): all of {executable.parent} would be shown to the candidate; --isolation none does without it"
        )
    return executable.parents[1]


def _parts(prefix: Path) -> list[Path]:
    """Return the files of a Python's installation that processes need, beside the system's.

    :raises ValidateError: if it is in a home directory itself
    """
    if any(map(prefix.is_relative_to, _SYSTEM)):
        return []
    homes = {Path(each.pw_dir) for each in pwd.getpwall()} | {Path.home()}
    if any(home.is_relative_to(prefix) for home in homes):
        raise ValidateError(
            f"--python: {prefix} has home directories in it, which the candidate would see; allowed in the sandbox is "
            "a Python that is installed in a separate directory; --isolation none does without it"
        )
    return [prefix / part for part in _INSTALLATION if (prefix / part).exists()]


def _system() -> Iterator[str]:
    for name in _SYSTEM:
        if os.path.islink(name):
            yield from ("--symlink", os.readlink(name), name)
        elif os.path.isdir(name):
            yield from ("--ro-bind", name, name)
    yield from ("--proc", "/proc", "--dev", "/dev")
    for place in ("/dev/shm", "/tmp"):
        yield from ("--perms", "1777", "--size", str(TEMPORARY), "--tmpfs", place)
    yield from _parents([Path("/etc", name) for name in _ETC])
    for name in _ETC:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")


def _parents(paths: Sequence[Path]) -> Iterator[str]:
    """The directories above, which bwrap would make for its caller alone."""
    found = {parent for path in paths for parent in path.parents}
    for parent in sorted(found, key=lambda path: len(path.parts)):
        yield from ("--perms", "0755", "--dir", str(parent))


def _each(option: str, paths: Sequence[Path]) -> Iterator[str]:
    for path in dict.fromkeys(paths):
        yield from (option, str(path), str(path))


def _memory(stack: contextlib.ExitStack, data: bytes) -> int:
    """A descriptor that data can be read from."""
    descriptor = os.memfd_create("sandbox")
    stack.callback(os.close, descriptor)
    os.pwrite(descriptor, data, 0)
    return descriptor


def _no_keyrings(architecture: int, *numbers: int) -> bytes:
    """A filter of seccomp's: these system calls, and all of other architectures, are not there (ENOSYS)."""
    load, equal, at_least, end = 0x20, 0x15, 0x35, 0x06
    refuse = len(numbers) + 1
    steps = [
        (load, 0, 0, 4), (equal, 1, 0, architecture), (end, 0, 0, 0x50000 | 38), (load, 0, 0, 0),
        # x32 has the same architecture.
        (at_least, refuse, 0, 0x40000000),
        *((equal, refuse - 1 - place, 0, each) for place, each in enumerate(numbers)),
        (end, 0, 0, 0x7FFF0000), (end, 0, 0, 0x50000 | 38),
    ]  # fmt: skip
    return b"".join(struct.pack("HBBI", *step) for step in steps)

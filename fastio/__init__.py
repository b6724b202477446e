"""Fast and fair image I/O for OpenStack services.

``import fastio; fastio.patch()`` makes a child's output and input fast, under eventlet and on
native threads, and changes nothing else. ``fastio.status()`` tells what was patched;
``fastio.unpatch()`` puts the originals back. Importing fastio patches nothing and imports none of
the patched libraries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastio.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from typing import Any

    from oslo_config.cfg import ConfigOpts

    from fastio.config import Options, Settings
    from fastio.report import Report

__version__ = VERSION
__all__ = ["names", "patch", "patched", "settings", "status", "unpatch"]


def patch(
    names: str | Sequence[str] | None = None, *, strict: bool = False, conf: ConfigOpts | None = None, **settings: Any
) -> Report:
    """Apply the patches, before or after ``eventlet.monkey_patch()`` and the imports of what is patched.

    May be called again, also with other settings, which then hold at once for everything: what they
    disable is taken back.

    :param names: the patches to apply, see :func:`names`; by default all but those that change what programs written
        for upstream may rely on
    :param strict: raise if a patch is left alone (unknown version or code, another tool in the way) and apply none of
        the patches asked for; by default it is logged and reported, and the service goes on
    :param conf: the service's oslo.config object, once it has read its files: its group ``[fastio]`` (see
        :mod:`fastio.opts`) wins over the defaults, also in later calls
    :param settings: ``chunk_size``, ``pipe_size``, ``yield_bytes`` (sizes in bytes, or such as ``"64KiB"``),
        ``store_chunk_size`` and ``store_chunk_sizes`` (such as ``{"s3": "256KiB"}``), ``trace`` (a
        directory; see the documentation), ``trace_buffer``, ``trace_file_size`` and ``trace_total_size`` (sizes),
        ``disabled`` and ``also`` (names of patches), ``enabled``; what is not given here comes from the environment
        (``FASTIO_CHUNK_SIZE`` …), else from the defaults
    :returns: what became of each patch
    :raises fastio.errors.SettingError: for a bad setting, before anything is patched
    :raises fastio.errors.UnknownPatchError: for a name that does not exist, before anything is patched
    :raises fastio.errors.PatchError: with ``strict``
    """
    from fastio import guru
    from fastio.patching import patcher

    report = patcher.apply(names, strict, settings, _options(conf))
    guru.offer(lambda: str(status()))
    return report


def _options(conf: ConfigOpts | None) -> Options | None:
    if conf is None:
        return None
    from fastio import opts

    return opts.read(conf)


def unpatch(names: str | Sequence[str] | None = None) -> Report:
    """Take back the patches (all by default): the very objects that were there are there again.

    Where another tool has wrapped ours meanwhile, ours passes everything through, and the report says who sits on top.
    """
    from fastio.patching import patcher

    return patcher.revert(names)


def patched(
    names: str | Sequence[str] | None = None, *, strict: bool = False, conf: ConfigOpts | None = None, **settings: Any
) -> AbstractContextManager[Report]:
    """A context in which the patches are applied; takes the same arguments as :func:`patch`.

    On leaving it, the patches that it applied are taken back and the settings before it are in force again.
    """
    from fastio.patching import patcher

    return patcher.applied(names, strict, settings, _options(conf))


def status() -> Report:
    """What is patched now, read from the live objects; ``print(fastio.status())`` shows a table."""
    from fastio.patching import patcher

    return patcher.status()


def settings() -> Settings:
    """The settings in force: sizes in bytes, with the source of each in ``.sources``."""
    from fastio import config

    return config.effective()


def names() -> tuple[str, ...]:
    """The names of all patches, those outside of the default among them."""
    from fastio.patching import registry

    return registry.names()

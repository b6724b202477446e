"""Fast and fair image I/O for OpenStack services.

``import fastio; fastio.patch()`` speeds up the input and output of child processes and of images, under eventlet and on
native threads. By default it also fixes what upstream gets wrong; ``fastio.patch(profile="safe")`` changes nothing but
speed. ``fastio.status()`` shows what is patched, and ``fastio.unpatch()`` puts the originals back. Importing fastio
patches nothing, and imports none of the patched libraries.
"""

from __future__ import annotations

from fastio.version import VERSION

# Not from typing, which takes longer to import than all else here: each child of a patched program does.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import _GeneratorContextManager
    from typing import Any

    from oslo_config.cfg import ConfigOpts

    from fastio.config import Settings
    from fastio.exporters import Metrics
    from fastio.report import Report

__version__ = VERSION
__all__ = ["metrics", "names", "patch", "patched", "settings", "status", "unpatch"]


def patch(
    names: str | Sequence[str] | None = None,
    *,
    strict: bool = False,
    conf: ConfigOpts | None = None,
    **settings: Any,
) -> Report:
    """Apply the patches.

    It can be called before or after ``eventlet.monkey_patch()``, and before or after the libraries are imported. It can
    be called again with other settings. The new settings then apply to everything at once, and patches that they
    disable are taken back.

    :param names: the patches to apply, see :func:`names`; by default those of the setting ``profile``
    :param strict: raise an error if a patch cannot be applied (unknown version or code, another tool in the way), and
        apply none of the patches; by default the patch is left out, logged and reported, and the service goes on
    :param conf: the service's oslo.config object, after it has read its files. Its group ``[fastio]`` (see
        :mod:`fastio.config`) takes precedence over the defaults, in later calls as well
    :param settings: the settings by name, such as ``chunk_size="64KiB"``, ``store_chunk_sizes={"s3": "256KiB"}`` or
        ``disabled=["wait"]``; the fields of :class:`fastio.config.Settings`. A setting that is not given here comes
        from the environment (``FASTIO_CHUNK_SIZE`` …), from ``conf``, or from the defaults
    :returns: what became of each patch
    :raises fastio.errors.SettingError: for a bad setting, before anything is patched
    :raises fastio.errors.UnknownPatchError: for a name that does not exist, before anything is patched
    :raises fastio.errors.PatchError: with ``strict``
    """
    from fastio import config
    from fastio.patching import patcher

    report, _ = patcher.apply(names, strict, settings, config.read_options(conf))
    _export(config.in_force())
    return report


def _export(settings: Settings | None) -> None:
    """Export the counts as ``settings`` ask for; None: no more."""
    import sys

    from fastio import config

    _offer()
    on = settings if settings is not None and settings.enabled and not config.only_reporting else None
    if on is not None and on.run_dir or "fastio.run_dir" in sys.modules:
        from fastio import run_dir

        run_dir.configure(on.run_dir if on is not None else None)


_offered = False


def _offer() -> None:
    """Have a section in the Guru Meditation reports of services, and counters, once their libraries are imported."""
    global _offered
    if _offered:
        return
    _offered = True
    from fastio.patching import imports

    def add_section(reports: Any) -> None:
        reports.TextGuruMeditation.register_section("fastio", lambda: status().text(everything=True))

    def create_counters(api: Any) -> None:
        from fastio import exporters

        exporters.create_counters(api)

    imports.when_imported("oslo_reports.guru_meditation_report", add_section)
    imports.when_imported("opentelemetry.metrics", create_counters)


def unpatch(names: str | Sequence[str] | None = None) -> Report:
    """Take back patches, by default all of them. The very objects that were there before are put back.

    If another tool has wrapped a function of fastio in the meantime, that function stays and passes every call through.
    The report then names the wrapper.
    """
    from fastio.patching import patcher

    report = patcher.revert(names)
    if names is None:
        _export(None)
    return report


def patched(
    names: str | Sequence[str] | None = None,
    *,
    strict: bool = False,
    conf: ConfigOpts | None = None,
    **settings: Any,
) -> _GeneratorContextManager[Report]:
    """Return a context manager in which the patches are applied. It takes the same arguments as :func:`patch`.

    At the end, the patches that it applied are taken back, those that it switched off are applied again, and so are
    the earlier settings. It is a decorator as well: the patches are then applied while the function runs.
    """
    from contextlib import contextmanager

    from fastio import config
    from fastio.patching import patcher, registry

    # A decorator without parentheses gives the function.
    names = registry.named(names, registry.names())
    options = config.read_options(conf)

    @contextmanager
    def patched() -> Iterator[Report]:
        report, take_back = patcher.apply(names, strict, settings, options)
        try:
            _export(config.in_force())
            yield report
        finally:
            take_back()
            _export(config.in_force())

    return patched()


def status() -> Report:
    """Report what is patched now, read from the live objects. ``print(fastio.status())`` shows a table."""
    from fastio.patching import patcher

    return patcher.status()


def metrics() -> Metrics:
    """Return what each patch did in this process: calls that it took, bytes, and fallbacks by reason.

    The counts begin at zero, and again in a forked child.
    """
    from fastio import exporters

    return exporters.read()


def settings() -> Settings:
    """Return the settings in effect: sizes in bytes, and in ``.sources`` where each setting came from."""
    from fastio import config

    return config.effective()


def names() -> tuple[str, ...]:
    """Return the names of all patches, in the order of application."""
    from fastio.patching import registry

    return registry.names()

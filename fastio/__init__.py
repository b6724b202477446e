"""Fast and fair image I/O for OpenStack services.

``import fastio; fastio.patch()`` speeds up the input and output of child processes and of images, under eventlet and on
native threads. By default it also fixes what upstream gets wrong; ``fastio.patch(profile="safe")`` changes nothing but
speed. ``fastio.status()`` shows what is patched, and ``fastio.unpatch()`` puts the originals back. Importing fastio
patches nothing, and imports none of the patched libraries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastio.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oslo_config.cfg import ConfigOpts

    # Type checkers have it, and nothing else needs it.
    from typing_extensions import Unpack

    from fastio.config import Options, Settings
    from fastio.keywords import Keywords, Patched
    from fastio.report import Report
    from fastio.watching.metrics import Metrics

__version__ = VERSION
__all__ = ["metrics", "names", "patch", "patched", "settings", "status", "unpatch"]


def patch(
    names: str | Sequence[str] | None = None,
    *,
    strict: bool = False,
    conf: ConfigOpts | None = None,
    **settings: Unpack[Keywords],
) -> Report:
    """Apply the patches.

    It can be called before or after ``eventlet.monkey_patch()``, and before or after the libraries are imported. It can
    be called again with other settings. The new settings then apply to everything at once, and patches that they
    disable are taken back.

    :param names: the patches to apply, see :func:`names`; by default those of the setting ``profile``
    :param strict: raise an error if a patch cannot be applied (unknown version or code, another tool in the way), and
        apply none of the patches; by default the patch is left out, logged and reported, and the service goes on
    :param conf: the service's oslo.config object, after it has read its files. Its group ``[fastio]`` (see
        :mod:`fastio.opts`) takes precedence over the defaults, in later calls as well
    :param settings: ``chunk_size``, ``pipe_size`` and ``yield_bytes`` (sizes in bytes, or as text such as ``"64KiB"``),
        ``store_chunk_size`` and ``store_chunk_sizes`` (such as ``{"s3": "256KiB"}``), ``transfers`` (a number),
        ``transfer_memory`` (a size), ``trace`` (a directory; see the documentation), ``trace_buffer``,
        ``trace_file_size`` and ``trace_total_size`` (sizes), ``trace_context`` (whether requests that go out carry the
        trace on), ``profile`` (``default``, or ``safe`` without the patches that change more than speed), ``disabled``
        and ``also`` (names of patches), ``site_fingerprints`` (a file of code that the site knows), ``verbose`` (a line
        in the log for each call), ``run_dir``, ``metrics_textfile``, ``metrics_statsd``, ``metrics_opentelemetry`` and
        ``metrics_interval`` (who is told of what fastio does, and every how many seconds), ``on_error`` (what a service
        does about a bad setting; a call of this function raises), and ``enabled``. A setting that is not given here
        comes from the environment (``FASTIO_CHUNK_SIZE`` …), from ``conf``, or from the defaults
    :returns: what became of each patch
    :raises fastio.errors.SettingError: for a bad setting, before anything is patched
    :raises fastio.errors.UnknownPatchError: for a name that does not exist, before anything is patched
    :raises fastio.errors.PatchError: with ``strict``
    """
    from fastio import config, guru, watching
    from fastio.patching import patcher

    report = patcher.apply(names, strict, settings, _options(conf))
    watching.follow(config.in_force())
    guru.offer(lambda: status().text(everything=True))
    return report


def _options(conf: ConfigOpts | None) -> Options | None:
    if conf is None:
        return None
    from fastio import opts

    opts.tell_unknown(conf)
    return opts.read(conf)


def unpatch(names: str | Sequence[str] | None = None) -> Report:
    """Take back patches, by default all of them. The very objects that were there before are put back.

    If another tool has wrapped a function of fastio in the meantime, that function stays and passes every call through.
    The report then names the wrapper.
    """
    from fastio import watching
    from fastio.patching import patcher

    report = patcher.revert(names)
    if names is None:
        watching.follow(None)
    return report


def patched(
    names: str | Sequence[str] | None = None,
    *,
    strict: bool = False,
    conf: ConfigOpts | None = None,
    **settings: Unpack[Keywords],
) -> Patched:
    """Return a context manager in which the patches are applied. It takes the same arguments as :func:`patch`.

    At the end, the patches that it applied are taken back, and the earlier settings apply again. It is a decorator as
    well: the patches are then applied while the function runs.
    """
    from functools import partial

    from fastio import watching
    from fastio.patching import patcher

    return watching.during(partial(patcher.applied, names, strict, settings, _options(conf)))


def status() -> Report:
    """Report what is patched now, read from the live objects. ``print(fastio.status())`` shows a table."""
    from fastio.patching import patcher

    return patcher.status()


def metrics() -> Metrics:
    """Return what each patch did in this process: calls that it took, bytes, and fallbacks by reason.

    The counts begin at zero, and again in a forked child.
    """
    from fastio.watching import metrics

    return metrics.read()


def settings() -> Settings:
    """Return the settings in effect: sizes in bytes, and in ``.sources`` where each setting came from."""
    from fastio import config

    return config.effective()


def names() -> tuple[str, ...]:
    """Return the names of all patches, including those outside the default."""
    from fastio.patching import registry

    return registry.names()

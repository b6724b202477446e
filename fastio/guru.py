"""A section on fastio in the Guru Meditation reports of services that use oslo.reports."""

from __future__ import annotations

import importlib.util
from typing import Any

_MODULE = "oslo_reports.guru_meditation_report"
_offered = False


def offer() -> None:
    """Have the section in the reports, from when oslo.reports is imported."""
    global _offered
    if _offered or importlib.util.find_spec("oslo_reports") is None:
        return
    _offered = True
    import wrapt

    wrapt.register_post_import_hook(_register, _MODULE)


def _register(module: Any) -> None:
    module.TextGuruMeditation.register_section("fastio", _text)


def _text() -> str:
    import fastio

    return str(fastio.status())

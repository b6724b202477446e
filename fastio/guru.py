"""A section on fastio in the Guru Meditation reports of services that use oslo.reports."""

import functools
import importlib.util
from collections.abc import Callable
from typing import Any

from fastio.patching import imports

_MODULE = "oslo_reports.guru_meditation_report"
_offered = False


def offer(text: Callable[[], str]) -> None:
    """Have a section with that text in the reports, from when oslo.reports is imported."""
    global _offered
    if _offered or importlib.util.find_spec("oslo_reports") is None:
        return
    _offered = True
    imports.when_imported(_MODULE, functools.partial(_register, text))


def _register(text: Callable[[], str], module: Any) -> None:
    module.TextGuruMeditation.register_section("fastio", text)

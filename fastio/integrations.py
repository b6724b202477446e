"""What programs get from fastio through libraries that they import: sections of reports, and counters."""

from typing import Any

from fastio.patching import imports

_offered = False


def offer() -> None:
    """Have it there from when oslo.reports and OpenTelemetry are imported."""
    global _offered
    if not _offered:
        _offered = True
        imports.when_imported("oslo_reports.guru_meditation_report", _add_section)
        imports.when_imported("opentelemetry.metrics", _create_counters)


def _add_section(reports: Any) -> None:
    """Have a section on fastio in the Guru Meditation reports of services."""
    from fastio.patching import patcher

    reports.TextGuruMeditation.register_section("fastio", lambda: patcher.status().text(everything=True))


def _create_counters(api: Any) -> None:
    from fastio import exporters

    exporters.create_counters(api)

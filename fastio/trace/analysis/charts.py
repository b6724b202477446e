"""Stacked bars as SVG, for :mod:`fastio.page`."""

import math
from collections.abc import Mapping, Sequence
from html import escape

#: Colours that the page has.
SERIES = 6
_WIDTH, _LEFT, _RIGHT, _BAR, _GAP, _LEGEND = 860, 110, 90, 22, 10, 20
#: Room above the bars for what the rows are, and below them for the axis.
_HEAD, _AXIS = 16, 40
#: Numbers on the axis, at most.
_TICKS = 8


def stacked(
    rows: Sequence[tuple[str, Mapping[str, float]]],
    series: Sequence[str],
    unit: str,
    colours: Sequence[str],
    axes: tuple[str, str],
) -> str:
    """A bar for each row, made of its parts in the order of ``series``.

    :param axes: what the rows are told apart by, and what is measured, with its unit
    :param colours: all names that the report has, so that one has the same colour in each of its charts; the seventh
        has the first colour again, paler
    """
    numbers = {name: number for number, name in enumerate(colours)}
    most = max((sum(parts.values()) for _, parts in rows), default=0) or 1
    legend = _legend(series, numbers)
    top = legend[1] + _HEAD
    bottom = top + len(rows) * (_BAR + _GAP)
    height = bottom + _AXIS
    found = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        'font-size="12">',
        legend[0],
        f'<text x="{_LEFT - 8}" y="{top - 6}" text-anchor="end">{escape(axes[0])}</text>',
    ]
    scale = (_WIDTH - _LEFT - _RIGHT) / most
    for tick in _ticks(most):
        x = _LEFT + tick * scale
        found.append(f'<path d="M{x:.1f} {top - 4}V{bottom}" stroke="currentColor" stroke-opacity="0.2"/>')
        found.append(f'<text x="{x:.1f}" y="{bottom + 14}" text-anchor="middle">{tick:g}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    found.append(f'<text x="{middle:.1f}" y="{bottom + 32}" text-anchor="middle">{escape(axes[1])}</text>')
    for index, (label, parts) in enumerate(rows):
        y = top + index * (_BAR + _GAP)
        middle = y + _BAR * 0.7
        found.append(f'<text x="{_LEFT - 8}" y="{middle:.1f}" text-anchor="end">{escape(label)}</text>')
        x = float(_LEFT)
        for name in series:
            width = parts.get(name, 0) * scale
            if width > 0.05:
                colour = _colour(numbers[name])
                found.append(f'<rect x="{x:.2f}" y="{y}" width="{width:.2f}" height="{_BAR}" {colour}/>')
                x += width
        total = sum(parts.values())
        found.append(f'<text x="{x + 6:.1f}" y="{middle:.1f}">{total:.3g} {escape(unit)}</text>')
    return "\n".join([*found, "</svg>"])


def _ticks(most: float) -> list[float]:
    """Round numbers from 0 on, up to the largest that is shown."""
    power = 10.0 ** math.floor(math.log10(most))
    step = next(step for step in (power / 5, power / 2, power, power * 2) if most / step < _TICKS)
    return [round(number * step, 12) for number in range(int(most / step) + 1)]


def _colour(number: int) -> str:
    # The same colours again, paler and paler, where there are more series than colours.
    opacity = max(0.25, 1 - 0.4 * (number // SERIES))
    return f'fill="var(--series-{number % SERIES + 1})" fill-opacity="{opacity:g}"'


def _legend(series: Sequence[str], numbers: Mapping[str, int]) -> tuple[str, int]:
    """What the colours are, and how much room that takes."""
    x, y, parts = _LEFT, 4, []
    for name in series:
        # A page's letters may be larger than those asked for here.
        width = 28 + 10 * len(name)
        if x + width > _WIDTH:
            x, y = _LEFT, y + _LEGEND
        parts.append(f'<rect x="{x}" y="{y}" width="12" height="12" {_colour(numbers[name])}/>')
        parts.append(f'<text x="{x + 17}" y="{y + 11}">{escape(name)}</text>')
        x += width
    return "\n".join(parts), y + _LEGEND + 10

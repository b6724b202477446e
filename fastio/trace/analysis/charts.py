"""Stacked bars as SVG, for :mod:`fastio.page`."""

from collections.abc import Mapping, Sequence
from html import escape

#: Colours that the page has.
SERIES = 6
_WIDTH, _LEFT, _RIGHT, _BAR, _GAP, _LEGEND = 860, 110, 90, 22, 10, 20


def stacked(
    rows: Sequence[tuple[str, Mapping[str, float]]], series: Sequence[str], unit: str, colours: Sequence[str]
) -> str:
    """A bar for each row, made of its parts in the order of ``series``.

    :param colours: all names that the report has, so that one has the same colour in each of its charts; the seventh
        has the first colour again, paler
    """
    numbers = {name: number for number, name in enumerate(colours)}
    most = max((sum(parts.values()) for _, parts in rows), default=0) or 1
    legend = _legend(series, numbers)
    top = legend[1]
    height = top + len(rows) * (_BAR + _GAP)
    found = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        'font-size="12">',
        legend[0],
    ]
    scale = (_WIDTH - _LEFT - _RIGHT) / most
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

"""A differential flame graph as SVG, for :mod:`fastio.page`.

Each box is a function where it was called, below its caller, and as wide as its total time in the variant. The colour
says how that differs from stock's.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape

from benchmarks.harness.stacks import Stacks
from fastio.page import Plot

from .profiling import Profile

_WIDTH, _ROW, _FONT = 1100, 17, 11
#: Pixels of a letter; a page's may be larger than those asked for here.
_LETTER = 7
#: A box that is narrower cannot be seen.
_NARROW = 2.0
#: How strong a colour is at most: text has to be readable on it.
_STRONG = 0.45
_GROWN, _SHRUNK, _SAME = "var(--bad-edge)", "var(--series-2)", "var(--series-6)"


@dataclass
class _Box:
    """A function with those that it has called: samples before and after, and what it has called."""

    before: int = 0
    after: int = 0
    called: dict[str, "_Box"] = field(default_factory=dict)


def plot(name: str, profile: Profile) -> Plot:
    """The picture, with what can be seen in it."""
    root = _tree(profile.before, profile.after)
    whole = f"{profile.seconds(root.before):.3f} → {profile.seconds(root.after):.3f} s of one run"
    text = [
        f"Stock → {profile.variant}: {whole}. A box is a function below its caller. Its width is its time in "
        f"{profile.variant}; red has grown, blue has shrunk, grey is as in stock. What only stock has is not there.",
        *(
            f"{each.name}: {profile.seconds(each.total[0]):.3f} → {profile.seconds(each.total[1]):.3f} s"
            for each in profile.functions()[:5]
            if each.grown()
        ),
    ]
    return Plot(f"Differential flame graph: {name}", _svg(root, profile), text)


def _tree(before: Stacks, after: Stacks) -> _Box:
    root = _Box(sum(before.values()), sum(after.values()))
    for stock, stacks in ((True, before), (False, after)):
        for stack, count in stacks.items():
            box = root
            for frame in stack.split(";"):
                box = box.called.setdefault(frame, _Box())
                if stock:
                    box.before += count
                else:
                    box.after += count
    return root


def _svg(root: _Box, profile: Profile) -> str:
    scale = _WIDTH / root.after
    boxes = list(_placed(root, scale))
    most = max(abs(box.after - box.before) for _, box, _, _ in boxes) or 1
    height = (max(depth for *_, depth in boxes) + 1) * _ROW
    found = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'font-size="{_FONT}">'
    ]
    for name, box, x, depth in boxes:
        width, y = box.after * scale, depth * _ROW
        change = box.after - box.before
        colour = _GROWN if change > 0 else _SHRUNK if change < 0 else _SAME
        strength = 0.08 + (_STRONG - 0.08) * abs(change) / most
        seconds = f"{profile.seconds(box.before):.3f} → {profile.seconds(box.after):.3f} s"
        found.append(
            f'<g><title>{escape(name)}: {seconds}</title><rect x="{x:.2f}" y="{y}" width="{max(width - 0.5, 0.5):.2f}" '
            f'height="{_ROW - 1}" fill="{colour}" fill-opacity="{strength:.2f}"/>'
        )
        letters = int((width - 6) / _LETTER)
        if letters >= 3:
            shown = name if len(name) <= letters else name[: letters - 1] + "…"
            found.append(f'<text x="{x + 3:.2f}" y="{y + _ROW - 5}" fill="currentColor">{escape(shown)}</text>')
        found.append("</g>")
    return "\n".join([*found, "</svg>"])


def _placed(root: _Box, scale: float) -> Iterator[tuple[str, _Box, float, int]]:
    """The boxes that can be seen, each with its left edge and its depth."""
    left = [("all", root, 0.0, 0)]
    while left:
        name, box, x, depth = left.pop()
        yield name, box, x, depth
        for each, inner in sorted(box.called.items()):
            if inner.after * scale >= _NARROW:
                left.append((each, inner, x, depth + 1))
            x += inner.after * scale

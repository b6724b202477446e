"""The benchmarks of a service: each of their rows a case of its own, in which every variant has its own server.

Elsewhere a row runs in a variant's environment. Here that is where its server runs; the clients are the same for all.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from benchmarks.backends import SERVICES
from benchmarks.harness.engine import Case
from benchmarks.harness.engine import Variant as CaseRow
from benchmarks.harness.modes import MIB

from .variants import Variant

#: Bytes of an image, unless the benchmark's own is smaller.
SIZE = 256 * MIB


def split(case: Case) -> Iterator[Case]:
    """A case for each row of the baseline's server, if it is a benchmark of a service; the case itself otherwise."""
    if case.backend not in SERVICES:
        yield case
        return
    for row in case.all_variants():
        if row.title.startswith(case.baseline):
            yield _of_row(case, row, row.title.removeprefix(case.baseline))


def _of_row(case: Case, row: CaseRow, what: str) -> Case:
    parameters = {**case.parameters, **row.parameters}
    # Where other requests are sent, they are what it is about.
    about: dict[str, Any] = {"unit": "ms", "value": "p50_ms"} if parameters.get("requests") else {}
    return replace(
        case, name=case.name + re.sub(r"[^a-z0-9]+", "-", what), title=parameters["task"] + what,
        variants=[CaseRow(row.name, skip=row.skip)], parameters={**parameters, "size": min(parameters["size"], SIZE)},
        baseline="", columns=(), beside={}, **about,
    )  # fmt: skip


def serve(case: Case, variants: Sequence[Variant], mode: str) -> Case:
    """One of these cases with a row for each variant; the first, stock's, has the case's own backend."""
    (row,) = case.all_variants()
    stock, *others = variants
    against = f"{mode}-{stock.name}"
    rows = [replace(row, label=against)]
    rows += [
        replace(row, label=f"{mode}-{variant.name}", against=against, parameters={"server": variant.name})
        for variant in others
    ]
    beside = {variant.name: (case.backend, _parameters(case, variant)) for variant in others}
    return replace(case, variants=rows, backend_parameters=_parameters(case, stock), beside=beside)


def _parameters(case: Case, variant: Variant) -> dict[str, Any]:
    """Of the backend that runs from the variant's environment."""
    own = {"python": str(variant.environment.python), "fastio": "on" if variant.patched else "off"}
    return {**case.backend_parameters, **own}

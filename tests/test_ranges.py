"""The releases that setup.cfg, README and the documentation name are those that the folders of patches require."""

import pathlib
import re

import pytest
from packaging.requirements import Requirement as PEP508
from packaging.version import Version

from benchmarks.tools import supported
from fastio.patches import requests, urllib3
from fastio.patching import registry
from tests.packaging.test_metadata import SETUP

ROOT = pathlib.Path(__file__).parents[1]
#: Distributions for benchmarks on real servers only.
OF_BENCHMARKS = ("stores",)


def extras() -> list[tuple[str, PEP508]]:
    """The requirements of the extras, with the extra's name, in libraries that are patched."""
    patched = {registry.Requirement(text).distribution for text in registry.libraries().values()}
    found = [
        (extra, PEP508(line))
        for extra, lines in SETUP["options.extras_require"].items()
        for line in lines.strip().splitlines()
    ]
    return [(extra, requirement) for extra, requirement in found if requirement.name in patched]


def lower(text: str) -> str:
    """The oldest release that a requirement accepts."""
    return next(each.version for each in PEP508(text).specifier if each.operator == ">=")


def text_of(name: str) -> str:
    return " ".join((ROOT / name).read_text(encoding="utf-8").split())


def test_an_extra_installs_what_is_patched() -> None:
    minimums = {PEP508(text).name: lower(text) for text in registry.libraries().values()}
    assert {extra for extra, _ in extras()} >= {"eventlet", "oslo", "client", "sheepdog", *OF_BENCHMARKS}
    for extra, requirement in extras():
        least = lower(str(requirement))
        if extra in OF_BENCHMARKS:
            assert registry.Requirement(registry.libraries()[requirement.name]).accepts(least)
        else:
            assert least == minimums[requirement.name], extra


@pytest.mark.parametrize(
    ("page", "folder", "sentence"),
    [
        ("README.rst", "eventlet", r"eventlet ([\d.]+) to ([\d.]+)"),
        ("README.rst", "oslo_concurrency", r"oslo.concurrency ([\d.]+) to ([\d.]+)"),
        ("README.rst", "glance_store", r"glance_store ([\d.]+) to ([\d.]+)"),
        ("doc/source/operators/glance.rst", "glance", r"code of glance ([\d.]+) to ([\d.]+)"),
        ("doc/source/programs/clients.rst", "glanceclient", r"fastio knows the releases ([\d.]+) to ([\d.]+),"),
    ],
)  # fmt: skip
def test_a_page_has_the_oldest_release_and_the_newest_that_is_known(page: str, folder: str, sentence: str) -> None:
    oldest, newest = re.findall(sentence, text_of(page))[0]
    requirement = registry.Requirement(registry.libraries()[folder])
    assert Version(oldest) == Version(lower(str(requirement)))
    assert f"{supported.all_releases()[requirement.distribution][-1]}.".startswith(f"{newest.rstrip('.')}.")


def test_other_ranges_on_pages() -> None:
    assert f"requests {lower(requests.REQUIRES)} and later" in text_of("doc/source/programs/clients.rst")
    assert f"urllib3 {lower(urllib3.REQUIRES)} or" in text_of("doc/source/programs/clients.rst")


def test_the_pythons() -> None:
    classifiers = re.findall(r"Python :: (3\.\d+)$", SETUP["metadata"]["classifiers"], re.MULTILINE)
    assert SETUP["mypy"]["python_version"] == classifiers[0]
    for page in ("README.rst", "doc/source/install.rst"):
        assert f"Python {classifiers[0]} to {classifiers[-1]}" in text_of(page)


def test_the_extras() -> None:
    names = re.findall(
        r"^``(\w+)`` ", (ROOT / "doc" / "source" / "install.rst").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(names) == sorted(SETUP["options.extras_require"])

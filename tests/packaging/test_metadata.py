"""The metadata that an index shows: one version, a licence, addresses, and the Pythons that are tested."""

import configparser
import re
from pathlib import Path

import pytest

import fastio

ROOT = Path(__file__).parents[2]
SETUP = configparser.ConfigParser()
SETUP.read(ROOT / "setup.cfg", encoding="utf-8")
METADATA = SETUP["metadata"]


def test_the_version_is_in_one_place() -> None:
    assert METADATA["version"] == "attr: fastio.version.VERSION"
    version = re.compile(rf"(?<![\d.]){re.escape(fastio.__version__)}(?![\d.])")
    files = [
        *ROOT.glob("*.rst"),
        *ROOT.glob("*.cfg"),
        *ROOT.glob("*.toml"),
        *(ROOT / "fastio").rglob("*.py"),
        *(ROOT / "doc" / "source").glob("*.rst"),
    ]
    named = [path for path in files if version.search(path.read_text(encoding="utf-8"))]
    assert named == [ROOT / "fastio" / "version.py"]


def test_the_licence() -> None:
    assert METADATA["license_expression"] == "Apache-2.0"
    # An index refuses the older field, and classifiers of licences, beside the expression.
    assert "license" not in METADATA
    assert "License ::" not in METADATA["classifiers"]
    text = (ROOT / METADATA["license_files"]).read_text(encoding="utf-8")
    assert text.split()[:4] == ["Apache", "License", "Version", "2.0,"]
    assert "END OF TERMS AND CONDITIONS" in text


@pytest.mark.parametrize("name", ["CONTRIBUTING.rst", "SECURITY.rst", "doc/source/versions.rst"])
def test_pages_have_no_other_address_of_the_project(name: str) -> None:
    """Else a human who puts the public host in would miss one."""
    for url in re.findall(r"https?://[\w.-]*example\.\w+/\S*", (ROOT / name).read_text(encoding="utf-8")):
        assert url.startswith(METADATA["url"])


def test_the_classifiers() -> None:
    """The Pythons are those of the daily runs and of tests/test_ranges.py."""
    pythons = re.findall(r"Python :: 3\.(\d+)$", METADATA["classifiers"], re.MULTILINE)
    assert [int(minor) for minor in pythons] == list(range(int(pythons[0]), int(pythons[-1]) + 1))
    # In [metadata] setuptools would not see it.
    assert SETUP["options"]["python_requires"] == f">=3.{pythons[0]}"
    assert "Typing :: Typed" in METADATA["classifiers"]
    assert METADATA["long_description_content_type"] == "text/x-rst"

"""Sphinx configuration."""

import inspect
import sys
from dataclasses import replace
from pathlib import Path

SOURCE = Path(__file__).parent
sys.path.insert(0, str(SOURCE.parent.parent))

from benchmarks import documentation  # noqa: E402
from benchmarks.tools import platforms  # noqa: E402
from fastio import __version__, matrix  # noqa: E402
from fastio.patching import registry  # noqa: E402
from fastio.renames import RENAMED  # noqa: E402
from fastio.tables import Table  # noqa: E402

project = "fastio"
copyright = "fastio developers"
version = release = __version__
extensions = ["sphinx.ext.autodoc", "sphinx.ext.viewcode", "reno.sphinxext"]
exclude_patterns = ["generated", "results"]
html_theme = "alabaster"
autodoc_typehints = "description"
autodoc_member_order = "bysource"
nitpicky = False


def write_patches(app):
    """The page of all patches, from the registry, so that it cannot differ from what is applied."""
    lines = []
    for patch in registry.patches():
        text = inspect.getdoc(sys.modules[patch.module])
        lines += [patch.name, "=" * len(patch.name), "", text.partition(": ")[2], ""]
        of_each = [list(map(str, patch.requirements(target))) for target in patch.targets]
        of_all = [text for text in of_each[0] if all(text in texts for texts in of_each)]
        lines += [":requires: " + (", ".join(of_all) or "nothing beyond CPython 3.10 to 3.15")]
        lines += [":replaces: " + ", ".join(f"``{target.key}``" for target in patch.targets)]
        firsts = {first: None for target in patch.targets for first in target.not_needed_from}
        lines += [f":not needed: in CPython {' and '.join(firsts)}, and later"] if firsts else []
        lines += [f":not needed: in {', '.join(patch.not_needed_in)}"] if patch.not_needed_in else []
        lines += [f":formerly: ``{old}``" for old, new in RENAMED.items() if new == patch.name]
        lines += [] if patch.default else [f":in the default: no; ask for it with ``also={patch.name}``"]
        lines += [""]
    write_generated("patches.rst", lines)


def write_matrix(app):
    """The tables of releases, from the registry, the fingerprints and the runs of the tests."""
    lines = ["Patches", "=======", "", matrix.patches_table().rst(), ""]
    releases = [[name, ", ".join(versions)] for name, versions in matrix.all_releases().items()]
    lines += ["Releases that are known", "=======================", ""]
    lines += [Table("", ["distribution", "releases"], releases).rst(), ""]
    lines += ["Releases that were tested together", "==================================", ""]
    lines += [replace(matrix.tested_table(), title="").rst()]
    write_generated("matrix.rst", lines)


def write_platforms(app):
    """The table of distributions, from what is kept of their packages."""
    effect, reasons = platforms.tables(platforms.kept())
    lines = [effect.rst(), "", "What is not in effect, and why:", "", reasons.rst()]
    write_generated("platforms.rst", lines)


def write_generated(name, lines):
    generated = SOURCE / "generated"
    generated.mkdir(exist_ok=True)
    (generated / name).write_text("\n".join(lines) + "\n")


def make_results(app):
    """What the pages show of the results that are kept."""
    documentation.make_all(SOURCE)


def setup(app):
    app.connect("builder-inited", make_results)
    app.connect("builder-inited", write_patches)
    app.connect("builder-inited", write_matrix)
    app.connect("builder-inited", write_platforms)

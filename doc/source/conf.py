"""Sphinx configuration."""

import logging
import sys
from dataclasses import replace
from pathlib import Path

SOURCE = Path(__file__).parent
sys.path.insert(0, str(SOURCE.parent.parent))

from benchmarks import documentation, quoted, reference  # noqa: E402
from benchmarks.harness import markup  # noqa: E402
from benchmarks.tools import platforms, supported  # noqa: E402
from fastio import __version__  # noqa: E402
from fastio.tables import Table  # noqa: E402

# reno tells of each note in each commit.
logging.getLogger("reno").setLevel(logging.WARNING)

project = "fastio"
copyright = "fastio developers"
version = release = __version__
extensions = ["sphinx.ext.autodoc", "sphinx.ext.viewcode", "sphinx_design", "reno.sphinxext"]
exclude_patterns = ["generated", "results"]
html_theme = "furo"
html_title = f"fastio {release}"
html_static_path = ["_static"]
html_css_files = ["fastio.css"]
html_show_sphinx = False
autodoc_typehints = "description"
autodoc_member_order = "bysource"
nitpicky = False


def write_reference(app):
    """The settings, commands, patches and outcomes, from what decides about them."""
    for make in (
        reference.settings,
        reference.commands,
        reference.patches,
        reference.profiles,
        reference.outcomes,
        reference.reasons,
    ):
        write_generated(f"{make.__name__}.rst", [make()])


def write_matrix(app):
    """The tables of releases, from the registry, the fingerprints and the runs of the tests."""
    lines = ["Patches", "=======", "", markup.rst(supported.patches_table()), ""]
    releases = [[name, ", ".join(versions)] for name, versions in supported.all_releases().items()]
    lines += ["Releases that are known", "=======================", ""]
    lines += [markup.rst(Table("", ["distribution", "releases"], releases)), ""]
    lines += ["Releases that were tested together", "==================================", ""]
    lines += [markup.rst(replace(supported.tested_table(), title=""))]
    write_generated("matrix.rst", lines)


def write_platforms(app):
    """The table of distributions, from what is kept of their packages."""
    effect, reasons = platforms.tables(platforms.kept())
    lines = [markup.rst(effect), "", "What is not in effect, and why:", "", markup.rst(reasons)]
    write_generated("platforms.rst", lines)


def write_generated(name, lines):
    generated = SOURCE / "generated"
    generated.mkdir(exist_ok=True)
    (generated / name).write_text("\n".join(lines) + "\n")


def make_results(app):
    """What the pages show of the results that are kept."""
    documentation.make_all(SOURCE)


def setup(app):
    app.add_role("fig", quoted.role)
    app.connect("builder-inited", make_results)
    app.connect("builder-inited", write_reference)
    app.connect("builder-inited", write_matrix)
    app.connect("builder-inited", write_platforms)

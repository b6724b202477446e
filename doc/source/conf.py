"""Sphinx configuration."""

import inspect
import sys
from pathlib import Path

SOURCE = Path(__file__).parent
sys.path.insert(0, str(SOURCE.parent.parent))

from fastio import __version__, registry  # noqa: E402

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
    """The page of all patches, from the registry, so that it can not differ from what is applied."""
    lines = []
    for patch in registry.patches():
        module = inspect.getmodule(patch.targets[0].make)
        text = inspect.getdoc(sys.modules[f"fastio.patches.{patch.name}"]) or inspect.getdoc(module)
        lines += [patch.name, "=" * len(patch.name), "", text.partition(": ")[2], ""]
        requirements = dict.fromkeys(str(r) for r in patch.requires)
        lines += [":requires: " + (", ".join(requirements) or "nothing beyond CPython 3.10 to 3.13")]
        lines += [":replaces: " + ", ".join(f"``{target.key}``" for target in patch.targets), ""]
    generated = SOURCE / "generated"
    generated.mkdir(exist_ok=True)
    (generated / "patches.rst").write_text("\n".join(lines))


def setup(app):
    app.connect("builder-inited", write_patches)

"""Mannerisms in pages, docstrings, comments, messages and names of tests: prints each, and fails if one is a habit."""

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
READ = ("*.rst", "doc/source/**/*.rst", "releasenotes/*/*", "fastio/**/*.py", "benchmarks/**/*.py", "tests/**/*.py")
#: This file and its test have the mannerisms as patterns and samples; a build of the pages leaves ``generated``.
LEFT_OUT = {"wording.py", "test_wording.py", "generated"}
#: More uses of one mannerism fail.
ALLOWED = 5
#: phrase that is good English: what it means
EXCEPTIONS = {
    r"\b(?:one|[KM]iB|[Bb]ytes[^.:]{,40}) at a time\b": "one after another, or in pieces of that size",
    r"\bSo far\b": "until now",
    r"\b0\.\d+ of (?:its one|\d+) (?:processor|core)": "processors in use",
    r"\bsame as upstream\b": "unchanged",
    r"\bWhat to \w+": "the title of a list",
}
_START = r"(?:\A|\n\s*\n\s*|[.!?] |:alt: |^\s*(?:[*|-]|\d\.) )"
#: mannerism: how it is found, with a blank for any white space
MANNERISMS = {
    "headless what or who": _START + r"(?:(?<!.)[Ww]|W)(?:hat|ho|hoever)\b(?![^.!?]*\?)",
    "at a time": r"\bat (?:a|one) time\b",
    "initial so": _START + r"(?:(?<!.)[Ss]|S)o\b",
    "as it is": r"\bas (?:it is|they are|it was|they were|upstream)\b",
    "somebody": r"\b(?:[Ss]ome|[Nn]o|[Ee]very|[Aa]ny)body\b",
    "ratio below 1": r"\b0\.\d+(?: (?:to|and|or) [\d.]+)? (?:of|times)\b",
    "what stands": r"\b[Ww]hat (?:stands|holds|has)\b",
    "says so": r"\b(?:say|says|said|saying) so\b",
    "told": r"\b(?:told|tells)\b",
    "of its own": r"\bof (?:its|their|his|our|your) own\b",
    "the same of": rf"\bthe same of\b|{_START}(?:(?:As t|T|(?<!.)t)h(?:at|ose) of|[Tt]he same (?:of|for|with))\b",
}


def prose(text: str) -> str:
    """``text`` with literals, literal blocks and exceptions left blank, so that lines keep their numbers."""
    block = r"^([ ]*)(?:(?!\.\. ).*::|\.\. (?:code-block|literalinclude)::.*)\n(?:[ ]*\n|\1[ ]+\S.*\n)+"
    exceptions = "|".join(EXCEPTIONS).replace(" ", r"\s+")
    for literal in (block, r"``[\s\S]+?``|:fig:`[\s\S]+?`", exceptions):
        text = re.sub(literal, lambda found: re.sub(r"\S", "-", found[0]), text, flags=re.MULTILINE)
    return text


def of_source(text: str) -> Iterator[tuple[int, str]]:
    """``(line, text)`` of each comment, string with a blank in it and name of a test."""
    comments: dict[tuple[int, int], list[str]] = {}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            line, column = token.start
            comments[line + 1, column] = [*comments.pop((line, column), []), re.sub(r"^#:? ?", "", token.string)]
    yield from ((line - len(lines), "\n".join(lines)) for (line, _), lines in comments.items())
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.lineno, node.name[5:].replace("_", " ")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def uses(path: Path) -> Iterator[str]:
    """Print each use in a file, and yield its mannerism."""
    content = path.read_text(encoding="utf-8")
    for first, text in of_source(content) if path.suffix == ".py" else [(1, content)]:
        text = prose(text)
        for name, pattern in MANNERISMS.items():
            for found in re.finditer(pattern.replace(" ", r"\s+"), text, re.MULTILINE):
                line = first + text.count("\n", 0, found.end())
                print(f"{path}:{line}: {name}:", *text[max(0, found.start() - 40) : found.end() + 60].split())
                yield name


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tools.wording", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="read these instead of the checkout's")
    files = parser.parse_args(arguments).files or [path for each in READ for path in sorted(ROOT.glob(each))]
    counts = Counter(name for path in files if LEFT_OUT.isdisjoint(path.parts) for name in uses(path))
    print(*(f"{counts[name]:5} {name}" for name in MANNERISMS), sep="\n")
    return int(max(counts.values(), default=0) > ALLOWED)


if __name__ == "__main__":
    sys.exit(main())

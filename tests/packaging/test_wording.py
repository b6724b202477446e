"""Mannerisms: each is found in pages and in code, with its place, and a habit fails."""

from pathlib import Path

import pytest

from benchmarks.tools import wording

SAMPLES = {
    "headless what or who": "Files are read. What is left is counted. Who reads? What for?",
    "at a time": "Sends twenty images at a time, but reads them one at a time.",
    "initial so": "So it is. So far, it is soon, so to speak.",
    "as it is": "The file stays as it is.",
    "somebody": "The file is for nobody.",
    "ratio below 1": "Takes 0.394 of the time, and 2.41 times the memory in 0.5 seconds.",
    "what stands": "Reads what stands in the file.",
    "says so": "The line says so.",
    "told": "The file tells its size.",
    "of its own": "The file has a line of its own.",
    "the same of": "Those of a file.",
}
CODE = {
    "docstring": 'def read():\n    """Reads.\n\n    {}\n    """\n',
    "comment": "x = 1\n\n\n# {}\n",
    "message": 'raise ValueError(f"""{{x}}:\n\n\n{}""")\n',
}


@pytest.mark.parametrize("mannerism", wording.MANNERISMS)
@pytest.mark.parametrize("kind", ["page", *CODE])
def test_each_is_found_once_with_its_line(
    kind: str, mannerism: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = CODE.get(kind, "Title\n=====\n\n{}\n").format(SAMPLES[mannerism])
    (path := tmp_path / ("page.rst" if kind == "page" else "code.py")).write_text(text, encoding="utf-8")
    assert wording.main([str(path)]) == 0
    used, *counts = capsys.readouterr().out.splitlines()
    assert used.startswith(f"{path}:4: {mannerism}: ")
    assert [each.split(maxsplit=1) for each in counts] == [
        [str(int(each == mannerism)), each] for each in wording.MANNERISMS
    ]


def test_a_habit_fails_and_literals_and_code_do_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, code = tmp_path / "page.rst", tmp_path / "code.py"
    page.write_text("It says ``nobody``::\n\n    nobody\n\nThe end.\n" + "It is told. " * wording.ALLOWED, "utf-8")
    code.write_text("def test_it_is_found(told):\n    assert 'told'\n", "utf-8")
    assert wording.main([str(page), str(code)]) == 0
    code.write_text("def test_nothing_is_told():\n    pass\n", "utf-8")
    assert wording.main([str(page), str(code)]) == 1
    assert f"{code}:1: told: nothing is told" in capsys.readouterr().out

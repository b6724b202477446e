"""Where the records of a suite's runs go."""

import contextlib
import datetime
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
RECORDS = ROOT / "results" / "records"


@contextlib.contextmanager
def records_directory(name: str) -> Iterator[Path]:
    """A directory that is not there yet, for one run: below ``name`` in the results, or a temporary one if it is empty.

    What is in the results stays.
    """
    if not name:
        with tempfile.TemporaryDirectory(prefix="load-") as temporary:
            yield Path(temporary) / "run"
        return
    now = datetime.datetime.now().strftime("%Y%m%d-%H%M%S.%f")
    yield RECORDS / name / f"{now}-{os.getpid()}"


def told(name: str, directory: Path) -> dict[str, str]:
    """What a run says of its records: where they are, if they are kept."""
    return {"records": os.path.relpath(directory, ROOT)} if name else {}

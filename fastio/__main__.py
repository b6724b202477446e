import sys

if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
    # The current directory, which python -m puts first: fastio imports nothing from it.
    del sys.path[0]

from fastio.cli import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())

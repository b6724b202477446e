import sys

from fastio.cli import main

if __name__ == "__main__":
    sys.exit(main())

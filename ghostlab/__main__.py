"""``python -m ghostlab``: the command without an installed script."""

import sys

from ghostlab.cli import main

if __name__ == "__main__":
    sys.exit(main())

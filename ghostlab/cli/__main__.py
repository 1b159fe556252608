"""``python -m ghostlab.cli``: the command without an installed script."""

import sys

from ghostlab.cli import main

sys.exit(main())

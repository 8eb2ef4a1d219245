"""`python -m scheduler`, for where the `vane` script is not on PATH."""

from __future__ import annotations

import sys

from scheduler.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

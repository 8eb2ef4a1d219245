"""Write our Grafana dashboards: `python -m dashboards.generate`, which `make dashboards` runs.

What is to be changed stands in the modules beside this one; the JSON files are made of them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from dashboards import balance, rules, scheduling, signals

FOLDER: Final = Path(__file__).resolve().parent
DASHBOARDS: Final = (scheduling.DASHBOARD, signals.DASHBOARD, rules.DASHBOARD, balance.DASHBOARD)


def files() -> dict[str, str]:
    """Return file name -> JSON of every dashboard."""
    return {
        f"{dashboard.uid}.json": json.dumps(dashboard.build(), cls=JSONEncoder, indent=2, sort_keys=True) + "\n"
        for dashboard in DASHBOARDS
    }


def main() -> None:
    for name, text in files().items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()

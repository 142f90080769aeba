"""Writes the dashboards of Grafana: python deploy/grafana/generate [FOLDER]

They are data in the modules beside this one. A test compares what this writes with deploy/grafana/dashboards.
"""

import json
import sys
from pathlib import Path

import overview
import processes
import queue_page

FOLDER = Path(__file__).parents[1] / "dashboards"


def write(folder: Path) -> None:
    """Write a file for each dashboard."""
    for dashboard in (overview.DASHBOARD, queue_page.DASHBOARD, processes.DASHBOARD):
        text = json.dumps(dashboard, indent=1, ensure_ascii=False)
        (folder / f"{dashboard['uid']}.json").write_text(text + "\n", encoding="utf-8")


write(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)

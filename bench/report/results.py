"""A run's results as one JSON file: the figures, the machine, and the promised durability."""

import json
from pathlib import Path
from typing import Any

RESULTS_DIR = Path(__file__).parents[1] / "results"

Results = dict[str, Any]


def file_name(results: Results) -> str:
    """A file name made of the time and the commit, so that runs sort by time."""
    moment = results["about"]["date"].replace(":", "").replace("+0000", "Z")
    return f"{moment}-{results['about']['commit'].rstrip('+')}-{results['about']['settings']}.json"


def save(results: Results, path: Path) -> None:
    """Write a file completely or not at all, and make its directory if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(json.dumps(results, indent=1) + "\n")
    temporary.replace(path)


def load(path: Path) -> Results:
    """Read results. Raises OSError, or ValueError if the file has no results."""
    results = json.loads(path.read_text())
    if not isinstance(results, dict) or not {"about", "scenarios"} <= results.keys():
        raise ValueError(f"{path} is not a file of benchmark results")
    return results

"""The programs in the README do what they say."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_programs_in_the_readme_run(tmp_path) -> None:
    embedded, worker = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"{embedded}\n{worker}"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "hello\n", "")
    assert (tmp_path / "queue.db").exists()

"""The programs in the README do what they say."""

import re
import subprocess
from pathlib import Path

from support.programs import path_to_package, python_of

ROOT = Path(__file__).parents[3]


def test_the_programs_in_the_readme_run(tmp_path) -> None:
    embedded, worker = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    run = subprocess.run(
        [python_of("embed"), "-W", "error", "-c", f"{embedded}\n{worker}"],
        cwd=tmp_path,
        env=path_to_package(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "hello\n", "")
    assert (tmp_path / "queue.db").exists()

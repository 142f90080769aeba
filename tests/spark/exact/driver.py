"""A Spark driver in a process of its own, which takes everything round and ends, unless it is killed."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from support.real_server import environment

TESTS = Path(__file__).parents[2]
ENDS_SECONDS = 300


class Driver:
    """A process and Spark's behind it, with the command that starts them.

    log: what they said.
    """

    def __init__(self, url: str, folder: Path) -> None:
        self.log = folder / "driver.log"
        command = [sys.executable, "-m", "spark.exact.driver", url, str(folder)]
        with self.log.open("w") as log:
            self._process = subprocess.Popen(
                command,
                env=environment(PYTHONPATH=str(TESTS)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self, *, whole: bool) -> None:
        """SIGKILL: of all its processes, or of the first one, so that Spark finds out by itself a moment later."""
        if whole:
            os.killpg(self._process.pid, signal.SIGKILL)
        else:
            os.kill(self._process.pid, signal.SIGKILL)

    def wait(self) -> int:
        """The exit code. The process stays in the table until `close`, so that nobody else has its number."""
        ended = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    def close(self) -> None:
        """End what is left of it."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def main(url: str, folder: str) -> None:
    """Run the queries to their end."""
    from pyspark_forq import session
    from spark.exact.round_trips import take_round
    from support.real_server import SECRET

    settings = {
        "spark.master": "local[2,2]",
        "spark.driver.memory": "512m",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
    }
    spark = session("driver", **settings)
    take_round(spark, {"url": url, "token": SECRET}, Path(folder))
    print("everything is round", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

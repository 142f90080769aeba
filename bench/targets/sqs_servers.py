"""Other servers that speak the protocol of Amazon SQS: ElasticMQ with its persistence on, and moto's server.

ElasticMQ comes from Maven's central repository, moto from the extra `dev`.
"""

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.load.generator import Address
from bench.load.sqs import SqsApi
from bench.targets.queue_servers import wait_for
from bench.targets.servers import STOP_SECONDS_MAX, ServerError

ELASTICMQ_VERSION = "1.7.1"
ANY_KEY = ("any", "any")
_START_SECONDS_MAX = 60.0
_FETCH_SECONDS_MAX = 600.0

_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>bench</groupId><artifactId>bench</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.elasticmq</groupId>
      <artifactId>elasticmq-server_2.13</artifactId>
      <version>{ELASTICMQ_VERSION}</version>
    </dependency>
  </dependencies>
</project>
"""

_CONFIG = """include classpath("application.conf")
node-address {{ host = "127.0.0.1", port = {port} }}
rest-sqs {{ enabled = true, bind-hostname = "127.0.0.1", bind-port = {port} }}
rest-stats {{ enabled = false }}
queues-storage {{ enabled = true, path = "{directory}/queues.conf" }}
messages-storage {{ enabled = true, uri = "jdbc:h2:{directory}/messages" }}
"""


class SqsServer(NamedTuple):
    """A running server of another project. durability: what an answer promises with its options."""

    title: str
    api: SqsApi
    durability: str
    keeps_connections: bool = True  # False: it closes each connection after its answer


@contextmanager
def elasticmq(data_dir: Path) -> Iterator[SqsServer]:
    """ElasticMQ that stores queues and messages, on a new database below `data_dir`. Raises ServerError."""
    with tempfile.TemporaryDirectory(prefix="forq-bench-", dir=data_dir) as directory:
        path = _classpath(Path(directory))
        port = _free_port()
        config = Path(directory) / "elasticmq.conf"
        config.write_text(_CONFIG.format(port=port, directory=directory))
        command = ["java", f"-Dconfig.file={config}", "-cp", path, "org.elasticmq.server.Main"]
        with _running(command, Path(directory), port) as api:
            yield SqsServer(f"ElasticMQ {ELASTICMQ_VERSION}", api, "in H2, written later, no fsync")


@contextmanager
def moto(data_dir: Path) -> Iterator[SqsServer]:
    """The server of moto, which is made for tests. Raises ServerError."""
    if importlib.util.find_spec("moto") is None:
        raise ServerError("moto is not installed (extra: dev)")
    from moto import __version__

    port = _free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with _running(command, data_dir, port) as api:
        yield SqsServer(f"moto {__version__}", api, "stores nothing", keeps_connections=False)


SQS_SERVERS = (elasticmq, moto)


def _classpath(directory: Path) -> str:
    """The jars of ElasticMQ, which Maven fetches unless it has them."""
    if shutil.which("java") is None or shutil.which("mvn") is None:
        raise ServerError("java or mvn is not installed (apt-get install default-jre-headless maven)")
    (directory / "pom.xml").write_text(_POM)
    found = directory / "classpath"
    command = ["mvn", "-q", "-B", "dependency:build-classpath", f"-Dmdep.outputFile={found}"]
    try:
        subprocess.run(
            command, cwd=directory, check=True, capture_output=True, text=True, timeout=_FETCH_SECONDS_MAX
        )
    except (subprocess.SubprocessError, OSError) as error:
        raise ServerError(f"Maven does not fetch ElasticMQ: {getattr(error, 'stdout', error)}") from None
    return found.read_text().strip()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@contextmanager
def _running(command: list[str], directory: Path, port: int) -> Iterator[SqsApi]:
    address = Address("127.0.0.1", port)
    child = subprocess.Popen(
        command, cwd=directory, env=os.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_for(address, child, _START_SECONDS_MAX)
        yield SqsApi(address, ANY_KEY)
    finally:
        child.terminate()
        child.wait(STOP_SECONDS_MAX)

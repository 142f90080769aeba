"""Files that options name, such as that of a secret. The driver reads them, and passes their text to the tasks."""

from codecs import BOM_UTF8
from pathlib import Path

FILE_BYTES_MAX = 2**20


def text_of(name: str) -> str:
    """The text of a file: a path, or a name among those of `spark.files` (`spark-submit --files`).

    A byte order mark is dropped. Raises ValueError if the file cannot be read.
    """
    try:
        with _place(name).open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
        if len(content) > FILE_BYTES_MAX:
            raise ValueError(f"the file is longer than {FILE_BYTES_MAX:,} bytes")
        return content.removeprefix(BOM_UTF8).decode("ascii", errors="replace")
    except OSError as problem:
        raise ValueError(f"the driver cannot read it ({problem.strerror})") from None


def _place(name: str) -> Path:
    path = Path(name)
    if path.is_absolute() or path.exists():
        return path
    try:
        from pyspark import SparkFiles

        sent = Path(SparkFiles.get(name))
    except (AssertionError, ImportError, TypeError):  # no driver, nor a worker of one
        return path
    return sent if sent.exists() else path

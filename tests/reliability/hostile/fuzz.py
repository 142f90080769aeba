"""Fuzzes a target under coverage guidance, alone in a process: `python -m reliability.hostile.fuzz TARGET [flags]`.

The flags are libFuzzer's. A failing input is printed, and the process ends with another exit code than 0; so it does
when one input takes longer than SECONDS_MAX or memory grows beyond MEGABYTES_MAX. -runs and -seed repeat a run.
"""

import base64
import sys
import tempfile
from functools import partial
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["forq_trio"]):
    from reliability.hostile.corpus import corpus, dictionary
    from reliability.hostile.targets import TARGETS

SECONDS_MAX = 10
MEGABYTES_MAX = 1_536  # the instrumented package takes a gigabyte of it from the start
INPUT_BYTES_MAX = 4_096


def showing(name: str, data: bytes) -> None:
    """Run the target; an input that fails is shown so that it can go into `corpus.FOUND`."""
    try:
        TARGETS[name](data)
    except BaseException:
        print(f"{name} fails on base64 {base64.b64encode(data).decode()}", flush=True)
        raise


def main(name: str, *flags: str) -> None:
    """Does not return: the fuzzer ends the process."""
    with tempfile.TemporaryDirectory() as directory:
        seeds = Path(directory) / "seeds"
        seeds.mkdir()
        for number, data in enumerate(corpus(name)):
            (seeds / str(number)).write_bytes(data)
        words = Path(directory) / "words"
        escaped = ["".join(f"\\x{byte:02x}" for byte in word) for word in dictionary()]
        words.write_text("".join(f'"{word}"\n' for word in escaped), encoding="ascii")
        bounds = [f"-timeout={SECONDS_MAX}", f"-rss_limit_mb={MEGABYTES_MAX}", f"-max_len={INPUT_BYTES_MAX}"]
        arguments = [
            sys.argv[0],
            f"-dict={words}",
            f"-artifact_prefix={directory}/",
            *bounds,
            *flags,
            str(seeds),
        ]
        atheris.Setup(arguments, partial(showing, name))
        atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])

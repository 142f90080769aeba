"""Fuzzes targets under coverage guidance: `python -m reliability.hostile.fuzz TARGET[,TARGET…] MUTATED [flags]`.

MUTATED: how many inputs each target gets beside its fixed ones, -1 for no end; the flags are libFuzzer's. A failing
input is printed, and the process ends with another exit code than 0; so it does when one input takes longer than
SECONDS_MAX or memory grows beyond MEGABYTES_MAX. The same MUTATED and -seed repeat a run.

To instrument the package takes 12 seconds of the processor, to fuzz a target in tier 2 three. So one process does the
first, and then becomes each target's by a fork, because libFuzzer ends the process in which it has run.
"""

import base64
import multiprocessing
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


def fuzz(name: str, mutated: int, *flags: str) -> None:
    """Does not return: the fuzzer ends the process."""
    with tempfile.TemporaryDirectory() as directory:
        seeds = Path(directory) / "seeds"
        seeds.mkdir()
        fixed = list(corpus(name))
        for number, data in enumerate(fixed):
            (seeds / str(number)).write_bytes(data)
        words = Path(directory) / "words"
        escaped = ["".join(f"\\x{byte:02x}" for byte in word) for word in dictionary()]
        words.write_text("".join(f'"{word}"\n' for word in escaped), encoding="ascii")
        bounds = [f"-timeout={SECONDS_MAX}", f"-rss_limit_mb={MEGABYTES_MAX}", f"-max_len={INPUT_BYTES_MAX}"]
        arguments = [
            sys.argv[0],
            f"-dict={words}",
            f"-artifact_prefix={directory}/",
            f"-runs={len(fixed) + mutated if mutated >= 0 else -1}",
            *bounds,
            *flags,
            str(seeds),
        ]
        atheris.Setup(arguments, partial(showing, name))
        atheris.Fuzz()


def main(names: str, mutated: str, *flags: str) -> int:
    """Fuzz the targets one after another, also behind one that fails; 1 if any did."""
    forks = multiprocessing.get_context("fork")
    failed = 0
    for name in names.split(","):
        print(f"{name}:", flush=True)
        process = forks.Process(target=fuzz, args=(name, int(mutated), *flags))
        process.start()
        process.join()
        if process.exitcode:
            print(f"{name} ended with {process.exitcode}", flush=True)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""Makes the root of the image (Dockerfile), as its last step before the image itself: python3 root.py FOLDER TREE…

The folder gets the Python that runs this, the packages of Debian whose libraries this Python and the trees link to, and
a few programs. A base with Python has three times as much: its package manager, Perl, and what they need.

Who looks for known holes in an image finds these packages in /var/lib/dpkg/status.d, as those of other images that are
made from packages without dpkg.
"""

import compileall
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

PROGRAMS = ("sh", "ls", "cat", "rm", "sleep", "tar")
"""To look around, and to remove a backup. Pods sleep before they end (deploy/kubernetes); `kubectl cp` needs tar."""
PACKAGES = (
    "base-files",  # whose Debian it is, and its folders
    "ca-certificates",
    "libgcc-s1",  # which glibc loads where a thread ends
    "tzdata",  # for TZ
)
PATHS = (
    *("/etc/ssl", "/usr/lib/ssl"),  # the authorities that TLS trusts
    *("/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/nsswitch.conf"),  # how glibc finds libraries and hosts
)
NOT_OF_PACKAGES = re.compile(r"/usr/share/(doc|man|locale|lintian)/|/gconv/")
"""Python brings its own encodings, for which glibc has gconv."""
NOT_OF_PYTHON = (
    *("site-packages", "dist-packages", "__pycache__", "sitecustomize.py"),  # of the base
    *("config-*", "ensurepip", "lib2to3"),  # to build and install
    *("test", "tests", "_test*", "_ctypes_test*", "xxlimited*"),
    *("idlelib", "tkinter", "_tkinter*", "turtle*", "pydoc_data", "readline.*", "_curses*"),  # for people
    *("nis.*", "_dbm.*", "_gdbm.*"),  # each links to libraries that nothing else needs
)


def main(folder: Path, trees: list[Path]) -> None:
    library = Path(sysconfig.get_path("stdlib"))
    copied = folder / library.relative_to("/")
    shutil.copytree(library, copied, symlinks=True, ignore=shutil.ignore_patterns(*NOT_OF_PYTHON))
    # The root is read-only later, so what is not compiled here would be compiled again by each start.
    compileall.compile_dir(str(copied), ddir=str(library), quiet=1)
    programs = [Path(sys.executable), *map(found, PROGRAMS)]
    for path in programs:
        copy_with_links(path, folder)
        record(package(path.resolve()), folder)
    for path in linked_to([*programs, *libraries(copied, *trees)]):
        if not any(path.is_relative_to(tree) for tree in trees):
            copy_library(path, folder)
    for name in PACKAGES:
        copy_package(name, folder)
    for path in map(Path, PATHS):
        for each in (path, *path.rglob("*")):
            copy(each, folder)
    for path in Path("/").iterdir():
        if path.is_symlink():  # as /lib64, which is where programs say that glibc is
            copy(path, folder)
    # glibc finds a library in /usr/local/lib by this alone.
    subprocess.run(["ldconfig", "-r", folder], check=True)


def found(program: str) -> Path:
    path = shutil.which(program)
    if path is None:
        sys.exit(f"This base has no {program}.")
    return Path(path)


def said(*command: str | Path, check: bool = True) -> list[str]:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=check).stdout.splitlines()


def libraries(*trees: Path) -> Iterator[Path]:
    for tree in trees:
        yield from (each for each in tree.rglob("*.so*") if each.suffix == ".so" or ".so." in each.name)


def linked_to(files: Iterable[Path]) -> Iterator[Path]:
    """The libraries that these files link to, and those that these link to."""
    lines = {line.strip() for line in said("ldd", *files)}
    for line in sorted(lines):
        if line.endswith("=> not found"):
            sys.exit(f"This base lacks a library: {line}")
        if library := re.fullmatch(r"(?:\S+ => )?(/\S+) \(0x\w+\)", line):
            yield Path(library[1])


def package(path: Path) -> str | None:
    """The package of Debian that brought a file: by its name, because /lib may be /usr/lib."""
    for line in said("dpkg-query", "--search", f"*/{path.name}", check=False):
        owner, _, brought = line.partition(": ")
        if " " not in owner and Path(brought).resolve() == path.resolve():
            return owner.partition(":")[0]
    return None


def record(name: str | None, folder: Path) -> None:
    """Write down that something of this package is in the image, and under which licence."""
    if name is not None:
        status = folder / "var/lib/dpkg/status.d" / name
        status.parent.mkdir(parents=True, exist_ok=True)
        status.write_text("\n".join([*said("dpkg-query", "--status", name), ""]), encoding="utf-8")
        terms = Path("/usr/share/doc", name, "copyright")
        if terms.exists():  # a base may leave it out
            copy_to(terms.resolve(), folder / terms.relative_to("/"))


def copy_library(path: Path, folder: Path) -> None:
    """Copy the package that brought a library; the library alone if none did."""
    if (name := package(path)) is not None:
        copy_package(name, folder)
    else:
        copy_with_links(path, folder)


def copy_package(name: str, folder: Path) -> None:
    record(name, folder)
    for line in said("dpkg-query", "--listfiles", name):
        if line.startswith("/") and line != "/." and not NOT_OF_PACKAGES.search(line):
            copy(Path(line), folder)


def copy_with_links(path: Path, folder: Path) -> None:
    """Copy a file, and what it is a link to."""
    copy(path, folder)
    if path.is_symlink():
        copy_with_links(path.parent / path.readlink(), folder)


def copy(path: Path, folder: Path) -> None:
    """Copy a file, a link, or a folder without its content, to the same place; what a base has left out is left out."""
    if os.path.lexists(path):
        copy_to(path, folder / path.parent.resolve().relative_to("/") / path.name)


def copy_to(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        target.mkdir(exist_ok=True)
        shutil.copystat(path, target)
    elif not os.path.lexists(target):
        shutil.copy2(path, target, follow_symlinks=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(each) for each in sys.argv[2:]])

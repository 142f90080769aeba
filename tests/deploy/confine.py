"""Runs a program under what systemd asks of the kernel for a service: confine.py FILE FAMILY,FAMILY PROGRAM ARGUMENT…

The file has the system calls that it may make. What it may not fails with EPERM, as with
SystemCallErrorNumber=EPERM; a socket of another family with EAFNOSUPPORT. Memory is never both written and run
(MemoryDenyWriteExecute), and no program gets more rights (NoNewPrivileges). The filter is made by libseccomp, as
systemd's own is.
"""

import ctypes
import errno
import os
import socket
import sys
from ctypes.util import find_library
from pathlib import Path

ALLOW, ERRNO = 0x7FFF0000, 0x00050000  # SCMP_ACT_ALLOW, SCMP_ACT_ERRNO(0)
EQUAL, MASKED_EQUAL = 4, 7  # SCMP_CMP_EQ, SCMP_CMP_MASKED_EQ
PR_SET_MDWE, MDWE_REFUSE_EXEC_GAIN = 65, 1
PROT_WRITE_AND_EXEC = 2 | 4


class Comparison(ctypes.Structure):
    """struct scmp_arg_cmp"""

    _fields_ = (
        ("arg", ctypes.c_uint),
        ("op", ctypes.c_int),
        ("datum_a", ctypes.c_uint64),
        ("datum_b", ctypes.c_uint64),
    )


def main() -> None:
    allowed, families, *command = sys.argv[1:]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_MDWE, MDWE_REFUSE_EXEC_GAIN, 0, 0, 0):
        sys.exit("this kernel cannot refuse memory that is written and run")
    load_filter(Path(allowed).read_text(encoding="utf-8").split(), families.split(","))
    os.execvp(command[0], command)


def load_filter(names: list[str], families: list[str]) -> None:
    lib = ctypes.CDLL(find_library("seccomp"), use_errno=True)
    lib.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(lib.seccomp_init(ERRNO | errno.EPERM))
    done = 0
    for name in names:
        number = lib.seccomp_syscall_resolve_name(name.encode())
        if number >= 0 and name not in ("socket", "mmap"):  # of this kind of processor
            done |= lib.seccomp_rule_add_array(context, ALLOW, number, 0, None)
    for family in families:
        done |= add(lib, context, ALLOW, "socket", Comparison(0, EQUAL, getattr(socket, family), 0))
    for family in set(range(64)) - {int(getattr(socket, each)) for each in families}:
        done |= add(lib, context, ERRNO | errno.EAFNOSUPPORT, "socket", Comparison(0, EQUAL, family, 0))
    for bits in (0, 2, 4):
        done |= add(lib, context, ALLOW, "mmap", Comparison(2, MASKED_EQUAL, PROT_WRITE_AND_EXEC, bits))
    done |= lib.seccomp_load(context)
    if done:
        sys.exit("the filter cannot be set")


def add(lib: ctypes.CDLL, context: ctypes.c_void_p, action: int, name: str, comparison: Comparison) -> int:
    number = lib.seccomp_syscall_resolve_name(name.encode())
    result: int = lib.seccomp_rule_add_array(context, action, number, 1, ctypes.byref(comparison))
    return result


main()

"""Whether servers on one database have the same secret, found out without telling it.

A server reports, beside what else it reports about itself, a salt of its own and what scrypt makes of its secret with
that salt. Each other server makes the same of its own secret, and compares.

This tells nothing about the secret. Who reads the reports reads the database, and could only want to guess the secret
with it. A guess costs scrypt's time and memory, a secret has at least AUTH_SECRET_LENGTH_MIN characters, and each start
has another salt, so no guess is of use for two. The sessions of the admin UI have an SHA-256 of the secret in the same
database, with which guessing is a hundred thousand times as fast: so this makes it no easier.
"""

import hashlib
import re
import secrets
from hmac import compare_digest

# Both sides need the same costs: other ones need another number of the form. 16 MiB and about 50 ms.
_N, _R, _P, _BYTES = 2**14, 8, 1, 32
_FORM = re.compile(r"1:([0-9a-f]{32}):([0-9a-f]{64})")


class SecretCheck:
    """The check of a secret, which takes a while to make. own: to report it to others."""

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()
        salt = secrets.token_bytes(16)
        self.own = f"1:{salt.hex()}:{self._made(salt).hex()}"

    def differs(self, check: str | None) -> bool:
        """Whether a check is of another secret, which takes a while; False if that cannot be told."""
        found = None if check is None else _FORM.fullmatch(check)
        if found is None:
            return False
        salt, made = map(bytes.fromhex, found.groups())
        return not compare_digest(self._made(salt), made)

    def _made(self, salt: bytes) -> bytes:
        return hashlib.scrypt(self._secret, salt=salt, n=_N, r=_R, p=_P, maxmem=64 * 2**20, dklen=_BYTES)

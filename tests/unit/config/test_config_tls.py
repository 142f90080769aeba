"""Certificate and key: both or neither, readable, and a pair."""

from pathlib import Path

import pytest
import trustme

from forq_trio.config.errors import ConfigError
from forq_trio.config.load import load
from forq_trio.config.settings import Config


def load_with(**variables: Path) -> Config:
    environ = {"FORQ_AUTH_SECRET": "s" * 32} | {name: str(path) for name, path in variables.items()}
    return load(environ=environ).config


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def pair(authority: trustme.CA, tmp_path: Path) -> tuple[Path, Path]:
    issued = authority.issue_cert("localhost")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    for blob in issued.cert_chain_pems:
        blob.write_to_path(str(cert), append=True)
    issued.private_key_pem.write_to_path(str(key))
    return cert, key


def test_a_pair_is_accepted(pair: tuple[Path, Path]):
    config = load_with(FORQ_TLS_CERT=pair[0], FORQ_TLS_KEY=pair[1])
    assert (config.tls_cert, config.tls_key) == pair


@pytest.mark.parametrize(
    ("given", "missing"), [("FORQ_TLS_CERT", "FORQ_TLS_KEY"), ("FORQ_TLS_KEY", "FORQ_TLS_CERT")]
)
def test_one_without_the_other(pair: tuple[Path, Path], given: str, missing: str):
    with pytest.raises(ConfigError) as caught:
        load_with(**{given: pair[0]})
    (problem,) = caught.value.problems
    assert problem.startswith(f"{missing}: is needed, for ")


def test_a_certificate_with_the_key_of_another(
    authority: trustme.CA, pair: tuple[Path, Path], tmp_path: Path
):
    other = tmp_path / "other.pem"
    authority.issue_cert("elsewhere").private_key_pem.write_to_path(str(other))
    with pytest.raises(ConfigError, match=r"FORQ_TLS_CERT: cannot be used with FORQ_TLS_KEY \(.*MISMATCH\)"):
        load_with(FORQ_TLS_CERT=pair[0], FORQ_TLS_KEY=other)


def test_a_file_that_holds_no_certificate(pair: tuple[Path, Path], tmp_path: Path):
    empty = tmp_path / "empty.pem"
    empty.touch()
    with pytest.raises(ConfigError, match="FORQ_TLS_CERT: cannot be used with FORQ_TLS_KEY"):
        load_with(FORQ_TLS_CERT=empty, FORQ_TLS_KEY=pair[1])

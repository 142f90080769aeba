"""Checks between settings that are each valid alone.

These are no validators of pydantic: those run only when every single value is valid, and we report all mistakes at
once.
"""

import ssl
from collections.abc import Container, Iterator
from pathlib import Path

from forq_trio.config.settings import SETTINGS, Config
from forq_trio.model import limits


def conflicts(config: Config, given: Container[str]) -> Iterator[str]:
    """A line for each conflict.

    config: in the place of an invalid value it has another source's, or the default. given: the names of the settings
    that any source has, valid or not.
    """
    if config.metrics_enabled and "metrics_auth_secret" not in given:
        allowed = SETTINGS["metrics_auth_secret"].form.allowed
        yield f"FORQ_METRICS_AUTH_SECRET: is needed when metrics are enabled; allowed: {allowed}"
    for name, other in (("tls_cert", "tls_key"), ("tls_key", "tls_cert")):
        if name in given and other not in given:
            yield f"{SETTINGS[other].variable}: is needed, for {name} is set; allowed: both or neither"
    if config.tls_cert and config.tls_key and (reason := _why_unusable(config.tls_cert, config.tls_key)):
        yield f"FORQ_TLS_CERT: cannot be used with FORQ_TLS_KEY ({reason}); allowed: a PEM pair, not encrypted"
    if config.ui_enabled and config.api_addr == config.ui_addr and config.api_addr.port != 0:
        yield f"FORQ_UI_ADDR: {config.ui_addr} is the API's address too; allowed: an address of its own"
    if config.sasquatch_enabled and not config.sasquatch_auth and not config.api_addr.is_loopback:
        yield (
            f"FORQ_SASQUATCH_AUTH: is false, but {config.api_addr} can be reached from other machines; "
            "allowed: true, or an api_addr such as localhost:8080"
        )
    if 0 < config.disk_reserve_mb < limits.DISK_RESERVE_MIB_MIN:
        yield (
            f"FORQ_DISK_RESERVE_MB: {config.disk_reserve_mb} is less than one commit may need; "
            f"allowed: 0, or at least {limits.DISK_RESERVE_MIB_MIN}"
        )
    least, most = config.sasquatch_default_max_receives, config.sasquatch_poison_max_receives
    if most < least:
        yield (
            f"FORQ_SASQUATCH_POISON_MAX_RECEIVES: {most} is less than sasquatch_default_max_receives; "
            f"allowed: at least {least}"
        )


def _why_unusable(cert: Path, key: Path) -> str | None:
    try:
        # The password keeps OpenSSL from asking for one at the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password="")
    except (ssl.SSLError, OSError, ValueError) as problem:
        return getattr(problem, "reason", None) or str(problem)
    return None

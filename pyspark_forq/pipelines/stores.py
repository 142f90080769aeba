"""Places of files: on this machine, or in any store that Spark reaches, by a URI such as s3a://bucket/archive.

Spark reads and writes the files with its own settings. The log of a table is written from the driver by another library
(archive_table.py), which takes the same settings as far as they are listed here, and the environment for all else:
AWS_…, GOOGLE_…, AZURE_…, HADOOP_CONF_DIR, and what a cloud gives its machines.
"""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pyspark.sql import SparkSession

_S3 = {
    "access.key": "AWS_ACCESS_KEY_ID",
    "secret.key": "AWS_SECRET_ACCESS_KEY",
    "session.token": "AWS_SESSION_TOKEN",
    "endpoint.region": "AWS_REGION",
    "endpoint": "AWS_ENDPOINT_URL",
}
_AZURE = {
    "fs.azure.account.key": "AZURE_STORAGE_ACCOUNT_KEY",
    "fs.azure.account.oauth2.client.id": "AZURE_STORAGE_CLIENT_ID",
    "fs.azure.account.oauth2.client.secret": "AZURE_STORAGE_CLIENT_SECRET",
}
_GOOGLE = {
    "fs.gs.auth.service.account.json.keyfile": "GOOGLE_SERVICE_ACCOUNT",
    "google.cloud.auth.service.account.json.keyfile": "GOOGLE_SERVICE_ACCOUNT",
}


def whole(place: str | Path) -> str:
    """A place as an absolute path or a URI, without a slash at its end."""
    return str(place).rstrip("/") if "://" in str(place) else str(Path(place).absolute())


def plain(uri: str) -> str:
    """The name that `whole` gives a file, from the URI that Spark gives it."""
    path = unquote(uri)
    return re.sub("^file:/+", "/", path)


def literal(path: str) -> str:
    """A path with its special characters escaped, so that Spark does not take it for a pattern."""
    return re.sub(r"([\\\[\]{}*?,])", r"\\\1", path)


def storage_options(spark: SparkSession, place: str) -> dict[str, str]:
    """What the driver needs to reach a place, from Spark's settings (`spark.hadoop.fs.…`)."""
    parts = urlsplit(place)
    if parts.scheme in ("s3", "s3a"):
        return _s3(spark, parts.netloc)
    names: dict[str, str] = {}
    if parts.scheme in ("abfs", "abfss"):
        account = parts.netloc.rpartition("@")[2]
        names = {f"{name}{suffix}": ours for suffix in ("", f".{account}") for name, ours in _AZURE.items()}
    elif parts.scheme == "gs":
        names = _GOOGLE
    return {ours: value for name, ours in names.items() if (value := _setting(spark, name)) is not None}


def _s3(spark: SparkSession, bucket: str) -> dict[str, str]:
    """`storage_options` of S3; a setting of the bucket goes before one of all buckets."""

    def found(name: str) -> str | None:
        return _setting(spark, f"fs.s3a.bucket.{bucket}.{name}") or _setting(spark, f"fs.s3a.{name}")

    options = {ours: value for name, ours in _S3.items() if (value := found(name)) is not None}
    endpoint = options.get("AWS_ENDPOINT_URL")
    if endpoint is not None:
        if "://" not in endpoint:
            endpoint = f"{'http' if found('connection.ssl.enabled') == 'false' else 'https'}://{endpoint}"
        options["AWS_ENDPOINT_URL"] = endpoint
        if endpoint.startswith("http://"):
            options["AWS_ALLOW_HTTP"] = "true"
    return options


def _setting(spark: SparkSession, name: str) -> str | None:
    return spark.conf.get(f"spark.hadoop.{name}", None)

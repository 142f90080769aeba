"""Reads the named statements of this package's `.sql` files."""

from importlib.resources import files


def load(name: str) -> dict[str, str]:
    """The statements of a file by name."""
    text = files(__package__).joinpath(f"{name}.sql").read_text(encoding="utf-8")
    parts = (part.partition("\n") for part in text.split("-- name: ")[1:])
    return {name: rest.partition("\n")[2].strip().removesuffix(";") for name, _, rest in parts}

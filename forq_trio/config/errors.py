"""The error of loading a configuration, in a module of its own: catching it must not import pydantic."""

from forq_trio.model.errors import ForqError


class ConfigError(ForqError):
    """The configuration is not valid. problems: one line for each mistake, naming where it was made."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)

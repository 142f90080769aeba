"""What loading a configuration raises. It stands apart so that whoever only catches it need not import pydantic."""

from forq_trio.model.errors import ForqError


class ConfigError(ForqError):
    """The configuration is not valid. problems: one line for each wrong thing, naming where it was set."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)

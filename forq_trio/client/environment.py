"""Where a program's server is, and its secret, if the program does not say: as the environment does.

What looks for the server is imported when it is needed: a process of Spark is told the URL, and has to start fast.
"""

import os
from enum import Enum

from forq_trio.model.access.secret_files import SecretFileError, file_variable, find_secret
from forq_trio.model.access.secrets import check_secret
from forq_trio.model.checks import check_is_text
from forq_trio.model.client_errors import InvalidSecret


class FromEnvironment(Enum):
    """The default of an argument: the value of this variable.

    None is no such default: a program that looks up a variable of its own, which is not set, has to hear of that.
    """

    URL = "FORQ_URL"
    SECRET = "FORQ_AUTH_SECRET"


def server_url(url: str | FromEnvironment = FromEnvironment.URL) -> str:
    """The given URL, else that of the server of this environment. Raises InvalidServerUrl as `url_of` does."""
    if isinstance(url, FromEnvironment):
        from forq_trio.client.server_urls import url_of

        return url_of(os.environ)
    return url


def server_secret(secret: str | FromEnvironment = FromEnvironment.SECRET) -> str:
    """The given secret, else that of FORQ_AUTH_SECRET or of the file that FORQ_AUTH_SECRET_FILE names, "" for none.

    Raises InvalidSecret, and TypeError for what is no str.
    """
    name = "the secret"
    if isinstance(secret, FromEnvironment):
        variable = secret.value
        try:
            secret, name = find_secret(variable, os.environ) or ("", variable)
        except SecretFileError as problem:
            raise InvalidSecret(f"{file_variable(variable)} {problem}") from None
    check_is_text("secret", secret)
    return check_secret(secret, name) if secret else ""


def advice(url: str | FromEnvironment) -> str:
    """What to add to the error that no server can be reached; "" if it was said where the server is."""
    if not isinstance(url, FromEnvironment):
        return ""
    from forq_trio.client.server_urls import names_a_server

    return "" if names_a_server(os.environ) else "; FORQ_URL is not set, which names another place"

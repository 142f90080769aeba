"""Whether a stream gets bold, dim and colours: logs, tables and progress all ask here.

In this order: NO_COLOR turns them off, bold too (no-color.org); FORCE_COLOR and CLICOLOR_FORCE turn them on
(force-color.org, bixense.com/clicolors); CLICOLOR=0 and TERM=dumb turn them off; else a terminal has them.
"""

import os
from typing import TextIO


def is_styled(stream: TextIO) -> bool:
    """Whether what is written to this stream may have escape sequences for bold, dim and colours."""
    if os.environ.get("NO_COLOR"):
        return False
    if any(os.environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return os.environ.get("CLICOLOR") != "0" and os.environ.get("TERM") != "dumb" and stream.isatty()

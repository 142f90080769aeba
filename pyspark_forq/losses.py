"""Data that the server no longer has: an error for the read, or a warning with failOnDataLoss=false."""

import logging

from pyspark_forq.errors import ForqDataLoss
from pyspark_forq.options import Options

_logger = logging.getLogger(__name__)


def lose(options: Options, loss: str, otherwise: str) -> None:
    """Raise ForqDataLoss with the sentence `loss`; with failOnDataLoss=false warn instead, which Spark prints to
    stderr.

    otherwise: says what is done with failOnDataLoss=false.
    """
    if options.fail_on_data_loss:
        raise ForqDataLoss(f"{loss}; with failOnDataLoss=false {otherwise}") from None
    _logger.warning("%s; %s", loss, otherwise)

"""What is to be read and is not on the server any more: an error, or a warning where that is allowed."""

import logging

from forq_trio.spark.errors import ForqDataLoss
from forq_trio.spark.options import Options

_logger = logging.getLogger(__name__)


def lose(options: Options, loss: str) -> None:
    """Raise ForqDataLoss with this sentence; with failOnDataLoss=false warn, which Spark passes on to stderr."""
    if options.fail_on_data_loss:
        raise ForqDataLoss(loss) from None
    _logger.warning("%s", loss)

"""The live views by the name in their path, /live/<name>: each is made of the site, the viewer and the query."""

from collections.abc import Callable, Mapping
from typing import Any

from forq_trio.ui.live.hub import View
from forq_trio.ui.pages.dead import DeadView
from forq_trio.ui.pages.message import MessageView
from forq_trio.ui.pages.overview import EmptyView, OverviewView
from forq_trio.ui.pages.queue import QueueView
from forq_trio.ui.pages.system import SystemView
from forq_trio.ui.pages.workbench import WorkbenchView

VIEWS: Mapping[str, Callable[[Any, Any, Mapping[str, str]], View]] = {
    "empty": EmptyView,
    "message": MessageView,
    "overview": OverviewView,
    "system": SystemView,
    "dead": DeadView,
    "workbench": WorkbenchView,
    "queue": QueueView,
}

"""The pages. Each module has the routes of one place, and its live view."""

from collections.abc import Callable, Mapping
from typing import Any

from forq_trio.ui.live.hub import View
from forq_trio.ui.pages.batches import batches_routes, batches_view
from forq_trio.ui.pages.binding import binding_routes
from forq_trio.ui.pages.consumers import consumer_routes
from forq_trio.ui.pages.dead import dead_routes, dead_view
from forq_trio.ui.pages.emptying import emptying_routes
from forq_trio.ui.pages.history import history_routes
from forq_trio.ui.pages.jump import jump_routes
from forq_trio.ui.pages.key_actions import key_routes
from forq_trio.ui.pages.message import message_routes, message_view
from forq_trio.ui.pages.message_list import message_list_routes
from forq_trio.ui.pages.overview import empty_view, overview_routes, overview_view
from forq_trio.ui.pages.queue import queue_routes, queue_view
from forq_trio.ui.pages.schedule import schedule_routes, schedule_view
from forq_trio.ui.pages.schedule_edit import schedule_edit_routes
from forq_trio.ui.pages.schedules import schedules_routes, schedules_view
from forq_trio.ui.pages.sending import sending_routes
from forq_trio.ui.pages.set_aside import set_aside_routes
from forq_trio.ui.pages.settings import settings_routes
from forq_trio.ui.pages.system import system_routes, system_view
from forq_trio.ui.pages.tokens import token_routes
from forq_trio.ui.pages.workbench import workbench_routes, workbench_view
from forq_trio.ui.pages.workers import workers_routes, workers_view

ALL_PAGES = (
    overview_routes,
    queue_routes,
    message_list_routes,
    message_routes,
    key_routes,
    settings_routes,
    sending_routes,
    emptying_routes,
    binding_routes,
    consumer_routes,
    history_routes,
    dead_routes,
    workbench_routes,
    schedules_routes,
    schedule_routes,
    schedule_edit_routes,
    workers_routes,
    batches_routes,
    jump_routes,
    system_routes,
    set_aside_routes,
    token_routes,
)
VIEWS: Mapping[str, Callable[[Any, Any, Mapping[str, str]], View]] = {
    "empty": empty_view,
    "message": message_view,
    "overview": overview_view,
    "system": system_view,
    "dead": dead_view,
    "workbench": workbench_view,
    "queue": queue_view,
    "schedule": schedule_view,
    "schedules": schedules_view,
    "workers": workers_view,
    "batches": batches_view,
}
"""The views by the name in their path, /live/<name>; each function makes one from the site, the viewer and the query.
"""

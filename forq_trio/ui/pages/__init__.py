"""The pages. Each module has the routes of one place, and its live view."""

from forq_trio.ui.pages.dead import dead_routes
from forq_trio.ui.pages.message import message_routes
from forq_trio.ui.pages.overview import overview_routes
from forq_trio.ui.pages.system import system_routes
from forq_trio.ui.pages.tokens import token_routes
from forq_trio.ui.pages.workbench import workbench_routes

ALL_PAGES = (
    overview_routes,
    message_routes,
    system_routes,
    token_routes,
    dead_routes,
    workbench_routes,
)

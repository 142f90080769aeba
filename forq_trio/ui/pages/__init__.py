"""The pages. Each module has the routes of one place, and its live view."""

from forq_trio.ui.pages.overview import overview_routes

ALL_PAGES = (overview_routes,)

"""The endpoints of Forq's API, each declared once: routes, documentation and the methods of clients follow."""

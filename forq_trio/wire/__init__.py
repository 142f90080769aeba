"""The JSON of Forq's API: each type is declared once, for the server and for the clients.

Requests refuse members that they do not know (the server reads them), answers ignore them (a client reads them, maybe
one that is older than its server). Bounds of numbers are stated for the OpenAPI document; the server checks them by
hand, because each has its own error code. Docstrings are part of that document, too.
"""

"""The methods of `Broker` and of the clients, each declared once by topic: its name, parameters, types and meaning.

Broker and clients implement them, with the same signature and without a text of their own: editors and `help` show the
one here, and script/blocking_client.py puts it into the blocking client. A method that is one command is here whole,
with its endpoint. Errors besides those that a method names are the ServiceErrors; a client also raises those of its
class.
"""

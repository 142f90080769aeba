"""Tests of the HTTP clients; `fake_forq` is used by the tests of the command line, too."""

"""Keyed messages: offers."""

"""Tests of what is in the folder deploy, of the image and of the compose files."""

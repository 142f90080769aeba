"""Stages, publications and exports of pipelines."""

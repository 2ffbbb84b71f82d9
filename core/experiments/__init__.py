"""Experiments: one file for each question that a page asks."""

"""Lessons: predict, run, explain."""

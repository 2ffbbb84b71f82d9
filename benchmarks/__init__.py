"""Benchmarks: commands that print every speed, size and delay in the documentation."""

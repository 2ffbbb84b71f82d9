"""The file of a study: TOML, read in one go, so that every mistake in it is named at once, with its line."""

from core.study.file.text import parse, read

__all__ = ["parse", "read"]

"""HTML templates of reports."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined


def open_templates(folder: Path) -> Environment:
    """Return a folder's Jinja environment: values are escaped, a missing value is an error."""
    return Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )

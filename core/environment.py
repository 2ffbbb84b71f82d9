"""What whoever runs the app may set from outside: whole numbers in environment variables."""

import os


def whole_number(name: str, otherwise: int) -> int:
    """The value of a variable, or `otherwise` where it is not set, or set to something else than a number above 0."""
    text = os.environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and int(text) > 0 else otherwise

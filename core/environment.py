"""What whoever runs the app may set from outside: whole numbers in environment variables."""

import os


def whole_number(name: str, otherwise: int) -> int:
    """The value of a variable, or `otherwise` where it is not set, or set to something else than a number above 0."""
    text = os.environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and int(text) > 0 else otherwise


def read_only() -> bool:
    """ABLATION_READ_ONLY=1: visitors of a public server may look at studies, but not start or delete them, and have nothing
    downloaded onto it."""
    return os.environ.get("ABLATION_READ_ONLY", "") not in ("", "0")

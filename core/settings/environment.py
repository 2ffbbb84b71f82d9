"""What whoever runs the app may set from outside: whole numbers and switches in environment variables."""

import os


def whole_number(name: str, otherwise: int, least: int = 1) -> int:
    """The value of a variable, or `otherwise` where it is not set, or set to something else than a number from `least` on."""
    text = os.environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and int(text) >= least else otherwise


def is_on(name: str) -> bool:
    """Whether a variable is set, to anything but 0."""
    return os.environ.get(name, "") not in ("", "0")


def read_only() -> bool:
    """Whether visitors may look at studies, but not start or delete them, and have nothing downloaded onto the server: so it is
    unless whoever runs it has set ABLATION_READ_ONLY=0, as `make run` does for one's own machine."""
    return os.environ.get("ABLATION_READ_ONLY") != "0"

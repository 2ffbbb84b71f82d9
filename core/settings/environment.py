"""Environment variables of the server, and errors for its operator."""

import os
import re

# Folders from the root on, with what lies in them: /data/studies.sqlite, C:\\data\\studies.sqlite
PATH = re.compile(r"(?<![\w./\\])(?:[A-Za-z]:)?[/\\](?:[^\s/\\'\":]+[/\\])+([^\s/\\'\":]*)")


def read_whole_number(name: str, otherwise: int, least: int = 1) -> int:
    """Return an environment variable as a whole number; `otherwise` if none or below `least`."""
    text = os.environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and int(text) >= least else otherwise


def is_on(name: str) -> bool:
    """Return whether an environment variable is set to anything but "" and "0"."""
    return os.environ.get(name, "") not in ("", "0")


def is_read_only() -> bool:
    """Return whether users may only view studies and models; True unless ABLATION_READ_ONLY=0."""
    return os.environ.get("ABLATION_READ_ONLY") != "0"


class ServerError(RuntimeError):
    """Something that the server needs and cannot use.

    Args:
        message: Name of it, and why, for the operator.
        public_message: The same for users, without paths, addresses or names.
    """

    def __init__(self, message: str, public_message: str = ""):
        super().__init__(message)
        self.public_message = public_message or message


def remove_paths(text: str) -> str:
    """Replace the folders of each path in an error's text by "…", so that users can read it."""
    return PATH.sub(r"…/\1", text)

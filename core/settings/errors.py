"""Errors of the server: who runs it is told where things lie, its visitors are not."""

import re

# Folders from the root on, with what lies in them: /data/studies.sqlite, C:\\data\\studies.sqlite
PATH = re.compile(r"(?<![\w./\\])(?:[A-Za-z]:)?[/\\](?:[^\s/\\'\":]+[/\\])+([^\s/\\'\":]*)")


class ServerError(RuntimeError):
    """Something that the server needs cannot be used; the message says which and why. told: the same for visitors, without
    paths, addresses or names."""

    def __init__(self, message: str, told: str = ""):
        super().__init__(message)
        self.told = told or message


def without_paths(text: str) -> str:
    """The words of an error as visitors may read them: of a path on this server its last name alone."""
    return PATH.sub(r"…/\1", text)

"""What is wrong in the text of a study, with the line of each mistake."""

from core.study.file.lines import KeyPath, places
from core.study.plan import StudyError

MOST_TOLD = 100  # mistakes of one file


class Mistakes:
    """All that are found in a text."""

    def __init__(self, text: str) -> None:
        self.places, self.lines = places(text), text.splitlines()
        self.problems: dict[tuple[int, str], None] = {}  # line (0: none), words; each once

    def error(self) -> StudyError:
        """All of them, in the order of their lines."""
        return StudyError([words for _, words in sorted(self.problems, key=lambda each: each[0])])

    def add(self, path: KeyPath, words: str, near: str = "") -> None:
        """Take note of a mistake, with the line of the key or of the nearest table around it. Raises StudyError for the last of too many."""
        there = next((path[:n] for n in range(len(path), 0, -1) if path[:n] in self.places), None)
        line = self.places[there] if there else 0
        if near and line:  # an element of a list that goes over several lines
            line = next((n for n in range(line, len(self.lines) + 1) if near in self.lines[n - 1]), line)
        self.problems[line, f"Line {line}: {words}" if line else words[0].upper() + words[1:]] = None
        if len(self.problems) > MOST_TOLD:
            raise self.error()

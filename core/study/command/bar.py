"""How far a study is, in one line: drawn over itself on a terminal, now and then on a line of its own elsewhere."""

import shutil
import time
from contextlib import suppress
from typing import TextIO

from core.study.database.schema import DIVERGED, DONE, FAILED, QUEUED, RUNNING
from core.study.runner import Progress
from core.train.budget import duration

WIDTH = 20  # signs of the bar itself
STARTING = "workers are starting"
EVERY = 30.0  # seconds between two lines where there is no terminal


class Bar:
    """Draws progress to a stream, which may go away: a study does not end with its terminal's window."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.terminal = stream, stream.isatty()
        self._drawn, self._said = -EVERY, ""

    def draw(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._drawn >= (0.5 if self.terminal else EVERY):
            self._drawn = now
            self._write(self._over(line(progress)) if self.terminal else line(progress) + "\n")
        if progress.trouble and progress.trouble != self._said:
            self.say(f"{progress.trouble} Trainings go on, and are stored as soon as it can be.")
        self._said = progress.trouble

    def say(self, words: str) -> None:
        """A sentence above the bar."""
        self._write((self._over("") if self.terminal else "") + words + "\n")

    def clear(self) -> None:
        self._write(self._over("") if self.terminal else "")

    def _over(self, words: str) -> str:
        room = shutil.get_terminal_size().columns - 1
        return "\r" + words[:room].ljust(room) + ("" if words else "\r")

    def _write(self, words: str) -> None:
        with suppress(OSError, ValueError):
            self.stream.write(words)
            self.stream.flush()


def line(progress: Progress) -> str:
    """ "[######··············] 37 of 385 runs · 31 % · 12 min left · 1 failed" """
    counts, full = progress.counts, int(WIDTH * progress.share)
    ended = sum(counts.get(state, 0) for state in (DONE, DIVERGED, FAILED))
    words = [f"{ended} of {sum(counts.values())} runs", f"{100 * progress.share:.0f} %"]
    if counts.get(QUEUED) or counts.get(RUNNING):
        words.append(progress.absent or (STARTING if progress.left is None else f"{duration(progress.left)} left"))
    words += [f"{counts[state]} {state}" for state in (DIVERGED, FAILED) if counts.get(state)]
    words += [f"{progress.elsewhere} in other processes"] * (progress.elsewhere > 0)
    return f"[{'#' * full}{'·' * (WIDTH - full)}] {' · '.join(words)}"

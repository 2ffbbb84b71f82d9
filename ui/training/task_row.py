"""The row that says which task is learnt, and what it is."""

import html

from core.tasks import task
from ui.kit.page import capital
from ui.kit.panel.control import Control, of, words


def task_row(training) -> list[Control]:
    """Which task, and what it is: an example drawn from it, what guessing gets right, what it is said to need."""
    learnt = task[training.task]
    reads, answer = learnt.example().split(": ", 1)[1].split(" → ")
    # A long answer stands below what is read, word under word.
    gap = " → " if len(reads + answer) < 80 else "<br><span style='opacity:.75;visibility:hidden'>For example</span> "
    about = (
        f"{html.escape(capital(task.help(training.task).split(' Example (')[0]))} "
        f"<span style='opacity:.75'>Chance {100 * learnt.chance:.3g} %, best possible {100 * learnt.best:g} %.</span>"
        f"<div style='overflow-x:auto;white-space:nowrap' tabindex='0' role='region' aria-label='Example'><span style='opacity:.75'>For example</span> "
        f"<code>{html.escape(reads)}</code>{gap}<code>{html.escape(answer)}</code></div>"
    )
    return [of(training, "task"), words(about)]

"""What a model is opened on: the text it reads, the head that is looked at, how many held-out texts it is measured on."""

from core.experiments.trained import knockout, tables
from core.experiments.trained.questions import questions
from ui.shared.models import known

TEXTS, WORK = 256, 8e10  # held-out texts; floating point operations that a pass through all of them may take
ENGLISH = (
    ("A clause in between", "The defendant, who had filed a motion to dismiss, was liable."),
    ("A noun of the other number", "The keys to the cabinet are on the table."),
    ("To be continued", "The court held that the tenants of the building"),
    ("The same again", "Mr. Smith was late. Mrs. Jones was early. Mr."),
)


def prompts(name: str) -> list[tuple[str, str]]:
    """(title, text) of what a model can be given to read; the first one it opens on."""
    opened = known(name)
    if opened.learnt and opened.learnt.texts:
        return list(opened.learnt.texts)
    if not opened.task:
        return list(ENGLISH)

    def make() -> tuple[list[tuple[str, str]], int]:
        rows = questions(opened, 64).tokens[:6].tolist()
        texts = dict.fromkeys(" ".join(opened.model.vocabulary[token] for token in row) for row in rows)
        return [(f"Text {n}", text) for n, text in enumerate(texts, 1)], 10_000

    return opened.results.get("prompts", make)


def reader(name: str) -> tuple[int, int]:
    """Layer and head to open a model on, from 1: the one its file names, or that reads the subject most; else the first."""
    opened = known(name)
    if "reader" in opened.about:
        return tuple(opened.about["reader"])
    if opened.learnt and opened.learnt.agreement:

        def make() -> tuple[tuple[int, int], int]:
            best = tables.readings(knockout.bench(opened, texts(name)))[:1]
            return next(((each.layer + 1, each.head + 1) for each in best), (1, 1)), 100

        return opened.results.get("reader", make)
    return 1, 1


def texts(name: str) -> int:
    """How many held-out texts: 256, or fewer for a model that would take too long."""
    opened = known(name)
    return max(16, min(TEXTS, int(WORK / (2 * opened.parameters * 20)) // 16 * 16))

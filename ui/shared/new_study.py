"""Text of a study that another page has written, for the dialog "New study" on Studies."""

from ui.kit.store import session

WRITTEN = "study_written"  # kept for a visitor


def hand_over_study(text: str):
    """Keep the text of a study, with which the dialog opens when Studies is shown."""
    session().kept[WRITTEN] = text


def take_study() -> str | None:
    """Return the text of a study that was handed over, once; else None."""
    text: str | None = session().kept.pop(WRITTEN, None)
    return text

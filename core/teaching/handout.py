"""What a teacher takes home: all answers of a class as one page of HTML, changes of mind as a table, what was gained."""

from collections import Counter
from collections.abc import Mapping
from html import escape

import pandas as pd

from core.figures.tally import tally_svg
from core.settings.wording import fixed
from core.teaching import check
from core.teaching.asked import AFTER, BEFORE, CHECK, PREDICTION, Asked, asked
from core.teaching.lessons.language import ENGLISH
from core.teaching.lessons.outcome import outcome
from core.teaching.lessons.told import measured_in_words
from core.teaching.lessons.wording import filled

STYLE = (
    ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:760px;margin:2em auto;padding:0 1em}"
    "svg{width:100%;height:auto}table{border-collapse:collapse;font-size:14px}td,th{border:1px solid #8886;padding:3px 8px;text-align:left}"
    "blockquote{margin:.4em 0;padding-left:.8em;border-left:3px solid #8886;overflow-wrap:anywhere}section{break-inside:avoid}"
)
SAFE = "default-src 'none'; style-src 'unsafe-inline'"


def votes_table(of: Asked, crosstab: pd.DataFrame) -> pd.DataFrame:
    """Answers of the first round (rows) × of the second (columns), in words; empty where nobody voted twice."""
    if crosstab.empty or not crosstab.to_numpy().sum():
        return pd.DataFrame()
    table = crosstab.groupby(crosstab.index.map(of.in_words)).sum()
    table = table.T.groupby(table.columns.map(of.in_words)).sum().T  # answers that read alike are one
    table.index.name, table.columns.name = "1 ↓ 2 →", None
    return table


def readable(answers: pd.DataFrame, words: Mapping[str, str], language: str = ENGLISH) -> pd.DataFrame:
    """Add each answer in words (`says`), and how sure its author was (`sure_text`); round seconds to a hundredth."""
    table = answers.assign(seconds=answers.seconds.round(2))
    says, sure = [], []
    for name, text, level in zip(answers.question.tolist(), answers.answer.tolist(), answers.sure.tolist()):
        of = asked(str(name), words, language)
        try:
            says.append(of.in_words(str(text)) if of else "")
        except ValueError:
            says.append("")
        is_asked = of is not None and of.kind != CHECK  # the eight questions do not ask it
        sure.append(words.get(f"was_sure_{level}", "") if is_asked else "")
    table.insert(list(table.columns).index("answer") + 1, "says", says)
    table.insert(list(table.columns).index("sure") + 1, "sure_text", sure)
    return table


def scores(answers: pd.DataFrame, name: str) -> dict[int, float]:
    """Seat -> share of the eight questions that is right, in the first round; of those that cannot be read, none."""
    rows = answers[(answers.question == name) & (answers["round"] == 1)]
    found = {}
    for seat, answer in zip(rows.seat.tolist(), rows.answer.tolist()):
        try:
            found[int(seat)] = check.score(str(answer))
        except ValueError:
            continue
    return found


def gained(answers: pd.DataFrame, words: Mapping[str, str]) -> str:
    """What the class has gained between the two checks, in a sentence."""
    found = check.gain(scores(answers, BEFORE), scores(answers, AFTER))
    if not found.low <= found.high:
        return words["class_gain_none"].format(n=found.n)
    said = words["class_gain"].format(gain=fixed(found.mean), low=fixed(found.low), high=fixed(found.high), n=found.n)
    if found.low <= 0 <= found.high:
        said += f" {words['class_gain_undecided']}"
    return said


def handout(answers: pd.DataFrame, code: str, words: Mapping[str, str], language: str = ENGLISH) -> str:
    """One page: every question with what was answered and why; no name. It asks no server for anything."""
    parts = [
        _question(asked(str(name), words, language), rows, words)
        for name, rows in answers.groupby("question", sort=False)
    ]
    names = set(answers.question)
    if {BEFORE, AFTER} <= names:
        parts.append(
            f"<section><h2>{escape(words['class_gain_title'])}</h2><p>{escape(gained(answers, words))}</p></section>"
        )
    title = escape(words["class_name"].format(code=code))
    return (
        f'<!doctype html><html lang="{escape(language)}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f'<meta http-equiv="Content-Security-Policy" content="{SAFE}"><title>{title}</title><style>{STYLE}</style></head>'
        f"<body><h1>{title}</h1>{''.join(parts)}</body></html>"
    )


def _question(of: Asked | None, rows: pd.DataFrame, words: Mapping[str, str]) -> str:
    if of is None:
        return ""
    votes = {n: dict(Counter(rows.answer[rows["round"] == n].tolist())) for n in sorted(set(rows["round"].tolist()))}
    out = outcome(of.lesson) if of.lesson and of.kind != CHECK else None
    counts = of.counts(votes, out)
    picture = tally_svg(counts, words["class_votes"])
    told = [str(text) for text in rows.because if text]
    why = "".join(f"<blockquote>{escape(text)}</blockquote>" for text in told)
    because = f"<h3>{escape(words['class_reasons'])}</h3>{why}" if told else ""
    legend = (
        [words["class_guesses"]] * of.is_number
        + [words["class_rounds"]] * (len(votes) > 1)
        + [words["class_green"]] * any(count.right for count in counts)
    )
    result = ""
    if out and of.lesson and of.kind == PREDICTION:
        told_so = escape(f"{words['measured']}: {measured_in_words(of.lesson, out, words)}.")
        result = f"<p><b>{told_so}</b> {escape(filled(of.lesson.means, of.lesson, out))}</p>"
    asks = f"{filled(of.lesson.question, of.lesson)} {of.asks()}" if of.lesson else ""
    return f"<section><h2>{escape(of.title)}</h2><p>{escape(asks)}</p>{picture}<p><small>{escape(' '.join(legend))}</small></p>{result}{because}</section>"

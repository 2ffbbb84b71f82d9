"""The report as one HTML file that asks nothing of anybody: no request, no script that runs, and every typed mark as text."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from itertools import groupby

from core.settings.process import device_name, versions
from core.teaching.lessons.language import phrases
from core.teaching.lessons.lessons import read_lesson
from core.teaching.lessons.prediction import VERDICTS
from core.teaching.lessons.readings.reading import CPU
from core.teaching.lessons.report.part import Done, done, element, part, typed
from core.teaching.lessons.report.report import Report, data
from core.teaching.lessons.report.rows import Row, as_data, rows_of, script
from core.teaching.lessons.report.style import STYLE
from core.teaching.lessons.wording import Words, of_what

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
FRAME = """\
<!DOCTYPE html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
{data}
</body>
</html>
"""


def write(report: Report, language: str, made: datetime) -> str:
    """The file. language: of its words; made: when."""
    words = phrases(language)
    lessons = [done(read_lesson(name, language), entry) for name, entry in report.entries.items()]
    rows = [row for each in lessons if each.out for row in rows_of(each.lesson, each.out)]
    at = f"{made.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    body = [
        _head(report, lessons, words, at),
        *(part(each, words) for each in lessons),
        _conclusion(report, words),
        _settings(report, words),
        _measured(rows, {each.lesson.name: each.lesson.title for each in lessons}, words),
        _made_with(words),
        _script(rows, words),
    ]
    held = data(
        report,
        language=language,
        made=at,
        verdicts={each.lesson.name: each.verdict for each in lessons},
        measured=[as_data(row) for row in rows],
        versions=versions(),
        device=device_name(CPU),
    )
    title = " · ".join(filter(None, (words["report_title"], report.name)))
    return FRAME.format(
        language=escape(language), policy=POLICY, title=escape(title), style=STYLE, body="\n".join(body), data=held
    )


def _head(report: Report, lessons: Sequence[Done], words: Words, at: str) -> str:
    """Title, name, and how often it came out as predicted."""
    counts = Counter(one.verdict for one in lessons)
    called = {each: words[each].partition(":")[0] for each in VERDICTS if counts[each]}
    listed = "".join(element("li", f"{what}: {counts[each]}", each) for each, what in called.items())
    return "".join(
        [
            element("p", "Ablation Lab", "of"),
            element("h1", words["report_title"]),
            f'<p class="author">{typed(report.name)}</p>' if report.name else "",
            element("p", words["report_made"].format(n=len(lessons), at=at), "of"),
            f'<ul class="counts">{listed}</ul>' if listed else "",
        ]
    )


def _conclusion(report: Report, words: Words) -> str:
    if not report.conclusion:
        return ""
    text = escape(report.conclusion)
    return f'<section>{element("h2", words["report_conclusion"])}<p class="typed" dir="auto">{text}</p></section>'


def _settings(report: Report, words: Words) -> str:
    """Of every page that is not as it opens."""
    listed = "".join(f"<li><code>{escape(page)}?{escape(link)}</code></li>" for page, link in report.links.items())
    told = element("p", words["report_links" if listed else "report_no_links"], "small")
    links = f'<ul class="links">{listed}</ul>' if listed else ""
    return f"<section>{element('h2', words['report_settings'])}{told}{links}</section>"


def _measured(rows: Sequence[Row], titles: Mapping[str, str], words: Words) -> str:
    """The table of every number."""
    if not rows:
        return ""
    heads = [words[f"report_{each}"] for each in ("value", "reading", "mean", "low", "high", "behind")]
    named = [f'<th scope="col"{" class=figure" * (2 <= at < 5)}>{escape(each)}</th>' for at, each in enumerate(heads)]
    listed = []
    for lesson, of in groupby(rows, key=lambda row: row.lesson):
        listed.append(f'<tr><th colspan="6" scope="rowgroup">{escape(titles[lesson])}</th></tr>')
        listed += [_row(row, heads, words) for row in of]
    table = f"<div class='table'><table><thead><tr>{''.join(named)}</tr></thead><tbody>{''.join(listed)}</tbody></table></div>"
    return f"<section>{element('h2', words['report_measured'])}{element('p', words['report_between'], 'small')}{table}</section>"


def _row(row: Row, heads: Sequence[str], words: Words) -> str:
    params = "".join(element("code", f"{name}={value}") for name, value in row.params.items())
    behind = of_what(row.measured, {**words, "exact": words["report_exact"]})
    seeds = element("code", row.seeds) if row.seeds else ""
    figures = "".join(
        f'<td class="figure" data-of="{escape(head)}">{escape(each)}</td>' for head, each in zip(heads[2:], row.numbers)
    )
    return (
        f"<tr><td>{escape(row.label)}{element('code', row.value)}</td>"
        f"<td>{escape(row.by)}{params}</td>{figures}<td>{escape(behind)}{seeds}</td></tr>"
    )


def _made_with(words: Words) -> str:
    """Versions and device."""
    found = versions()
    pairs = [
        (words["report_code"], found["code"]),
        *((name, found[name.lower()]) for name in ("Python", "torch", "numpy")),
        (words["report_device"], device_name(CPU)),
        (words["report_seeds"], words["report_which_seeds"]),
    ]
    listed = "".join(element("dt", name) + element("dd", what) for name, what in pairs)
    return f"<section>{element('h2', words['report_made_with'])}<dl>{listed}</dl></section>"


def _script(rows: Sequence[Row], words: Words) -> str:
    if not rows:
        return ""
    return f'<section>{element("h2", words["report_script"])}<pre tabindex="0">{escape(script(rows))}</pre></section>'

"""HTML of lessons and classes in one component: path, heading, bars of votes."""

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from urllib.parse import urlencode

import streamlit as st

from core.figures.small_pictures import Count
from core.teaching.lessons.language import ENGLISH, has_lesson
from core.teaching.lessons.lesson import Lesson
from core.teaching.lessons.picture import encode_sketch, letter, render_rows, thumbnail_html
from core.teaching.lessons.prediction import AS_PREDICTED, Entry, measure_outcome, verdict
from core.teaching.lessons.reader import lesson, read_lesson
from ui.kit.limits import PARAMETER
from ui.kit.pages import LESSONS
from ui.kit.server.scripts import component
from ui.kit.store import session

HERE = Path(__file__).parent
COLUMN = 720  # width of a column of text in pixels
_html = component("lesson_html", HERE / "html.js", (HERE / "html.css").read_text())
# Streamlit's radio buttons as cards. Curves to choose from are masks: they take the colour of the
# text in both themes.
CARDS = """<style>
.stApp { --lab-accent: light-dark(#0060a0, #4aa8e0); --lab-soft: light-dark(#dcecf8, #17364d);
  --lab-edge: light-dark(#7d8793, #77838f); }
:is([class*=st-key-answer_], [class*=st-key-carry_], [class*=st-key-carried_],
  [class*=st-key-check_]) {
  [role=radiogroup] { gap: 8px; width: 100%; }
  [role=radiogroup] > div { width: 100%; }
  [role=radiogroup] label { display: flex; width: 100%; min-height: 40px; margin: 0;
    padding: 8px 16px; box-sizing: border-box; align-items: center;
    border: 1px solid var(--lab-edge); border-radius: 8px;
    background: light-dark(#ffffff, #11151a); }
  [role=radiogroup] label:hover { border-color: var(--lab-accent); }
  [role=radiogroup] label:has(input:checked) { border-color: var(--lab-accent);
    box-shadow: inset 0 0 0 1px var(--lab-accent); background: var(--lab-soft); }
  [role=radiogroup] label:has(input:focus-visible) { outline: 2px solid var(--lab-accent);
    outline-offset: 2px; }
}
[data-testid=stMain] :is([data-testid=stWidgetLabel], [role=radiogroup],
  [data-testid=stButtonGroup], button) p {
  font-size: 14px; line-height: 20px; }
[data-testid=stMain] [data-testid=stButtonGroup] button { min-height: 32px; }
.st-key-links h2 { padding: 0 !important; line-height: 32px; }
.st-key-card { border-color: transparent; background: light-dark(#f3f5f8, #1a2027); }
.st-key-next a, .st-key-next a:hover { background: var(--lab-accent); }
.st-key-next a :is(span, p) { color: light-dark(#ffffff, #11151a) !important; font-weight: 600; }
STYLES</style>"""


def draw_html(key: str, html: str, height: int = 0) -> None:
    """Draw trusted HTML in the component of lessons; `height` is reserved while it loads.

    Args:
        key: Key of the component.
        html: HTML to draw.
        height: Minimum height in pixels while it loads, so that nothing below moves; 0 for none.
    """
    if height:
        st.html(f"<style>.st-key-{key} {{ min-height: {height}px; }}</style>")
    _html(key=key, data=html)


def draw_answer_styles(key_suffix: str = "", lesson_shown: Lesson | None = None) -> None:
    """Draw CSS that turns radio buttons of answers into cards; with a lesson's curves, sketches.

    Args:
        key_suffix: Key suffix of the answers' radio buttons.
        lesson_shown: Lesson whose answers may be curves; None for no lesson.
    """
    styles = []
    if (
        lesson_shown is not None
        and lesson_shown.prediction is not None
        and lesson_shown.prediction.kind == "curve"
    ):
        group = f".st-key-answer_{key_suffix} [role=radiogroup]"
        styles.append(
            f"{group} {{ flex-direction: row; align-items: stretch; }} {group} > div {{ flex: 1 1"
            f" 0; min-width: 0; display: flex; align-items: stretch; }} {group} label {{"
            " flex-direction: column; align-items: start; height: 100%; }"
        )
        styles.append(
            f'{group} label::before {{ content: ""; width: 100%; aspect-ratio: 2; background:'
            " currentColor; mask: var(--sketch) center / contain no-repeat; }"
        )
        for index, option in enumerate(lesson_shown.prediction.options, 1):
            styles.append(
                f"{group} > div:nth-of-type({index}) {{ --sketch:"
                f' url("{encode_sketch(option)}"); }}'
            )
    st.html(CARDS.replace("STYLES", "\n".join(styles)))


def lesson_params(lesson_name: str, language: str) -> dict[str, str]:
    """Return the link parameters (a dict) that open a lesson in a language."""
    return {"shown": "one", "lesson": lesson_name} | (
        {} if language == ENGLISH else {"language": language}
    )


def render_anchor(params: Mapping[str, str], inner_html: str, css_class: str = "") -> str:
    """Return a link to a view of Lessons as HTML, for the same tab; inner_html is not escaped."""
    limits = session().limits
    only = {PARAMETER: limits.write()} if limits else {}
    address = f"{LESSONS.name_in_address}?{urlencode({**params, **only})}"
    return (
        f'<a class="{css_class}" href="{escape(address)}"'
        f' data-set="{escape(json.dumps(params))}">{inner_html}</a>'
    )


def order_lessons() -> list[str]:
    """Return the names of lessons by number, those without a prediction last."""
    return sorted(lesson, key=lambda name: read_lesson(name).prediction is None)


def is_done(entry: Entry | None) -> bool:
    """Return whether a lesson is finished: its transfer question is answered."""
    return entry is not None and entry.carried is not None


def render_progress(entries: Mapping[str, Entry], current: str = "") -> str:
    """Return steps, one per lesson with a prediction, as HTML; `current` is the open lesson."""
    drawn = ""
    for name in order_lessons():
        kind = "done" if is_done(entries.get(name)) else ""
        if read_lesson(name).prediction:
            drawn += f'<i class="{"here" if name == current else kind}"></i>'
    return f'<span class="steps" aria-hidden="true">{drawn}</span>'


def describe_level(lesson_shown: Lesson, texts: Mapping[str, str]) -> str:
    """Describe difficulty and length of a lesson: "Beginner · 4 min"."""
    level = (
        texts[lesson_shown.difficulty.replace(" ", "_")]
        if lesson_shown.prediction
        else texts["open_end"]
    )
    return f"{level} · {texts['minutes'].format(n=lesson_shown.minutes)}"


def render_path(entries: Mapping[str, Entry], language: str, texts: Mapping[str, str]) -> str:
    """Return all lessons as HTML cards in order, with progress and the next one."""
    lessons = {name: read_lesson(name, language) for name in order_lessons()}
    names = [name for name, entry_lesson in lessons.items() if entry_lesson.prediction]
    done = [name for name in names if is_done(entries.get(name))]
    following = next((name for name in names if name not in done), "")
    head = f'<span style="font-size:16px">{escape(texts["why_predict"])}</span>'
    done_of = texts["done_of"].format(n=len(done), all=len(names))
    head += f'<span class="soft push">{escape(done_of)}</span>{render_progress(entries)}'
    if following:
        label = texts["continue" if entries else "begin"].format(n=lessons[following].number)
        head += render_anchor(lesson_params(following, language), escape(label), "fill")
    cards = [
        _render_card(entry_lesson, entries.get(name), name == following, language, texts)
        for name, entry_lesson in lessons.items()
    ]
    return f'<div class="line">{head}</div><div class="path">{"".join(cards)}</div>'


def _render_card(
    lesson_shown: Lesson,
    entry: Entry | None,
    is_next: bool,
    language: str,
    texts: Mapping[str, str],
) -> str:
    """Return the HTML card of one lesson, with its status."""
    out = measure_outcome(lesson_shown) if entry else None
    title = (
        f"{lesson_shown.number} · {lesson_shown.title}"
        if lesson_shown.prediction
        else lesson_shown.title
    )
    level = describe_level(lesson_shown, texts) + (
        "" if has_lesson(language, lesson_shown.name) else " · EN"
    )
    status = ""
    if entry and out and lesson_shown.prediction:
        result = verdict(lesson_shown.prediction, entry.answer, out)
        status = (
            f"✓ {texts.get(f'{result}_short', texts[result])}"
            if is_done(entry)
            else texts["one_left"]
        )
        style = "good" if is_done(entry) and result == AS_PREDICTED else ""
        status = f'<span class="{style}">{escape(status)}</span>'
    elif is_next:
        status = f"<em>{escape(texts['next'])}</em>"
    inside = (
        "<span"
        f' class="picture">{thumbnail_html(lesson_shown, texts, out)}</span><b>{escape(title)}</b>'
    )
    inside += f'<span class="line"><span>{escape(level)}</span>{status}</span>'
    kind = " ".join(
        filter(None, ("card", "done" if is_done(entry) else "", "next" if is_next else ""))
    )
    return render_anchor(lesson_params(lesson_shown.name, language), inside, kind)


def render_top(
    lesson_shown: Lesson,
    question: str,
    entries: Mapping[str, Entry],
    language: str,
    texts: Mapping[str, str],
) -> str:
    """Return a lesson's heading as HTML: way back, number, level, progress, title, question."""
    back = render_anchor({"shown": "every"}, f"‹ {escape(texts['view_every'])}")
    total = sum(read_lesson(name).prediction is not None for name in lesson)
    where = (
        texts["lesson_of"].format(n=lesson_shown.number, all=total) + " · "
        if lesson_shown.prediction
        else ""
    )
    where += describe_level(lesson_shown, texts)
    if not has_lesson(language, lesson_shown.name):
        where += f" · {texts['in_english']}"
    head = (
        f'{back}<span class="soft'
        f' push">{escape(where)}</span>{render_progress(entries, lesson_shown.name)}'
    )
    return (
        f'<div class="top"><div class="line">{head}</div><h1>{escape(lesson_shown.title)}</h1>'
        f"<p>{escape(question)}</p></div>"
    )


def render_setting(lesson_shown: Lesson, texts: Mapping[str, str]) -> str:
    """Return what a lesson compares as HTML: a title, and its values as "?"."""
    rows = render_rows(lesson_shown, texts)
    return f'<div class="setting"><h2>{escape(lesson_shown.picture)}</h2>{rows}</div>'


def render_bars(counts: Sequence[Count], texts: Mapping[str, str], is_lettered: bool = True) -> str:
    """Return answers as HTML bars of the last round's votes; an earlier round's are lines.

    Args:
        counts: Votes for each answer; without rounds before they may be seen.
        texts: Texts of the page.
        is_lettered: Whether answers are labelled A, B, ….
    """
    totals = [max(1, sum(votes)) for votes in zip(*(count.rounds for count in counts))]
    bars = []
    for index, count in enumerate(counts):
        shares = [
            f"--share:{100 * votes / total:.1f}%" for votes, total in zip(count.rounds, totals)
        ]
        # The fill is there from the beginning, so that it grows where it is.
        inside = f'<i style="{shares[-1] if shares else "--share:0%"}"></i>'
        inside += f'<i class="before" style="{shares[0] if len(shares) > 1 else "--share:0%"}"></i>'
        inside += f"<b>{letter(index)}</b>" if is_lettered else ""
        inside += f'<span class="text">{escape(count.label)}</span>'
        inside += f'<span class="tick">{"✓" if count.right else ""}</span>'
        votes = [str(number) for number in count.rounds]
        votes = [*votes[:-1], f"<b>{votes[-1]}</b>"] if votes else []
        inside += f"<output>{' → '.join(votes)}</output>"
        description = (
            f"{count.label}: {' → '.join(map(str, count.rounds))}" if votes else count.label
        )
        kind = "bar right" if count.right else "bar"
        bars.append(f'<li class="{kind}" aria-label="{escape(description)}">{inside}</li>')
    return f'<ol class="bars" aria-label="{escape(texts["class_votes"])}">{"".join(bars)}</ol>'


def render_legend(counts: Sequence[Count], texts: Mapping[str, str]) -> str:
    """Return the legend of the bars as HTML; "" if they need none."""
    rounds = len(counts[0].rounds) if counts else 0
    keys = (
        [("", texts["class_round"].format(n=rounds)), ("before", texts["class_round"].format(n=1))]
        if rounds > 1
        else []
    )
    if any(count.right for count in counts):
        keys.append(("right", texts["class_correct"]))
    drawn = "".join(f'<span><i class="{kind}"></i>{escape(label)}</span>' for kind, label in keys)
    return f'<div class="key">{drawn}</div>' if keys else ""

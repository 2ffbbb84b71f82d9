from urllib.parse import urlencode

import streamlit as st

from core.settings.wording import distinct
from core.teaching.lessons.lessons import lesson
from ui.kit.limits import LOOK, PARAMETER, Limits
from ui.kit.page import literal
from ui.kit.pages import CLASS, LESSONS, PAGES, START, TRAINING, Page
from ui.kit.panel.menu import link_to
from ui.kit.store import kinds_of
from ui.lessons import picture
from ui.lessons.classroom.links import QR, address_of, qr_svg
from ui.lessons.context import view

FREE = ("variants", "out")  # settings that can be moved unless the teacher locks them: a click on a part takes it out
NO_CONTROL = ("baseline", "begin", "device", "dtype")  # settings that a class has no use for


@view
def teacher_link(context):
    """Link for a class: some pages, views and controls, and the rest locked."""
    words = context.words
    st.markdown(literal(words["link_about"]))
    left, right = st.columns([3, 2], gap="large")
    with left:
        pages, limits, params = _chosen(words)
    if pages:
        with right:
            _shown(pages[0], limits, params, words)


def _chosen(words) -> tuple[list[Page], Limits, dict[str, str]]:
    """The tick boxes -> (pages, the first of which is opened; limits; parameters of that page)"""
    offered = {page.key: page for page in PAGES if page is not START}
    keys = st.multiselect(
        words["link_pages"],
        list(offered),
        default=["block"],
        format_func=lambda key: offered[key].name,
        key="link_pages",
    )
    pages = [offered[key] for key in keys if key in offered]
    if not pages:
        st.info(literal(words["link_none"]))
        return [], Limits(), {}
    first = pages[0]
    views = st.multiselect(
        words["link_views"].format(page=first.name), list(first.views), format_func=first.views.label,
        placeholder=words["link_all"], key=f"link_views_{first.key}",
    )  # fmt: skip
    known = _known(first)
    if not known and first is not LESSONS:
        st.caption(literal(words["link_visit"].format(page=first.name)))
    label = {name: each.label for name, each in known.items()}
    free = [name for name in FREE if name in known]
    moved = _some(words["link_moved"], known, label, f"link_moved_{first.key}", free) if known else []
    rest = [name for name in known if name not in moved]
    locked = _some(words["link_locked"], rest, label, f"link_locked_{first.key}") if known else []
    params = dict(link_to(first.key))
    if first is LESSONS:
        params = _lesson(words)
    if first is CLASS:  # what lets its teacher in is handed to nobody
        params = {name: value for name, value in params.items() if name in ("code", "language")}
    large = st.toggle(words["link_large"], key="link_large")
    if first is TRAINING and st.toggle(words["link_begin"], key="link_begin"):
        params["begin"] = "on"
    shown = tuple(f"{first.key}.{each}" for each in views)
    made = Limits(tuple(keys), shown, tuple(moved), tuple(locked), large, params)
    return pages, made, params


def _known(page: Page) -> dict:
    """Settings that can be ticked: of a page that somebody has opened since the server began."""
    return {
        name: each
        for kind in kinds_of.get(page.key, ())
        for name, each in kind.settings().items()
        if each.group != LOOK and name not in NO_CONTROL
    }


def _some(label: str, offered, words: dict[str, str], key: str, chosen=()) -> list[str]:
    labels = dict(zip(offered, distinct(words[name] for name in offered)))
    return st.multiselect(label, list(offered), default=list(chosen), format_func=labels.get, key=key)


def _lesson(words) -> dict[str, str]:
    labels = dict(zip(lesson, distinct(map(lesson.label, lesson))))
    name = st.selectbox(words["link_lesson"], list(lesson), format_func=labels.get, key="link_lesson")
    return {"shown": "one", "lesson": name}


def _shown(first: Page, limits: Limits, params: dict[str, str], words):
    """The link, as text and as a QR code, and what it looks like."""
    embedded = st.toggle(words["link_embed"], key="link_embed")
    query = params | {PARAMETER: limits.write()} | ({"embed": "true"} if embedded else {})
    link = f"{address_of(first.path)}?{urlencode(query)}"
    st.link_button(words["link_preview"], link, icon=":material/open_in_new:")
    st.code(link, language=None, wrap_lines=True)
    drawn = qr_svg(link)
    if drawn:
        picture.draw("link_qr", drawn)
    else:
        st.info(literal(words["link_too_long"].format(n=len(link.encode()), most=QR)), icon=":material/qr_code:")
    st.caption(literal(words["link_holds"]))

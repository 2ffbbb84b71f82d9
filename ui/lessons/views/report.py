from functools import partial

import streamlit as st

from core.teaching.lessons.report import ReportError, read
from core.teaching.lessons.report.part import done
from core.teaching.lessons.report.report import CONCLUSION, LARGEST, NAME
from ui.kit.page import literal
from ui.kit.server.downloads import download_link
from ui.kit.store import bind
from ui.lessons import handed_in
from ui.lessons.context import view
from ui.lessons.progress import progress

FILE = "ablation-lab-report.html"


@view
def report(context):
    """My report: one file to hand in, with predictions, results, and what is needed to do it again."""
    words = context.words
    left, right = st.columns([3, 2], gap="large")
    with left:
        st.markdown(f"**{literal(words['report_title'])}**  \n{literal(words['report_hand_in'])}")
        if progress().entries:
            _to_hand_in(context)
        else:
            st.info(literal(words["report_empty"]), icon=":material/edit_note:")
    with right, st.container(border=True):
        _again(words)


def _to_hand_in(context):
    """What will be in it, what may be added, and the file."""
    words, entries, held = context.words, progress().entries, handed_in.typed()
    names = handed_in.to_predict()
    open_ends = sum(entry.carried is None for entry in entries.values())
    said = words["report_holds"].format(n=len(entries), all=len(names))
    said += " " + words["report_open_ends"].format(n=open_ends) if open_ends else ""
    st.markdown(literal(said))
    st.markdown("\n".join(_line(context.lesson(name), entries[name], words) for name in names if name in entries))
    name = bind("report_name", held.name, partial(handed_in.take_down, "name"))
    conclusion = bind("report_conclusion", held.conclusion, partial(handed_in.take_down, "conclusion"))
    st.text_input(words["report_name"], max_chars=NAME, **name)
    st.text_area(words["report_conclude"], max_chars=CONCLUSION, **conclusion)
    make = handed_in.maker(context.look.language)
    download_link(words["report_download"], FILE, make, "text/html", delay=handed_in.ON_ITS_WAY, primary=True)
    st.caption(literal(words["report_nothing_else"]))


def _line(lesson, entry, words) -> str:
    """A lesson and its verdict, which the file repeats: it is measured here, where the page shows how far that is."""
    verdict = done(lesson, entry).verdict
    what = words[verdict].partition(":")[0] if verdict else words["report_not_measured"]
    return f"- {lesson.number} · {literal(lesson.title)} :gray[{literal(what)}]"


def _again(words):
    """A report that was saved: what is in it, and what becomes of it."""
    st.markdown(f"**{literal(words['report_again'])}**")
    file = st.file_uploader(words["report_upload"], type=None, key="report_file", max_upload_size=LARGEST >> 20)
    if file is None:
        return
    try:
        found = read(file.getbuffer())
    except ReportError as error:
        st.error(literal(error), icon=":material/block:")
        return
    if handed_in.typed().taken_over == found:
        said = words["report_restored"].format(n=len(found.entries))
        st.success(literal(said), icon=":material/check:")
    else:
        _offer(found, words)
    _settings(found, words)


def _offer(found, words):
    """What is in the file, and the button that takes it over."""
    said = words["report_found"].format(n=len(found.entries))
    said += " " + words["report_left_out"].format(n=found.left_out) if found.left_out else ""
    st.markdown(literal(said))
    st.button(
        words["report_restore"],
        key="report_restore",
        type="primary",
        disabled=not found.entries,
        on_click=handed_in.take_over,
        args=(found,),
    )


def _settings(found, words):
    """Links to the pages as the report has them."""
    links = handed_in.pages_of(found)
    if links:
        st.markdown(f"**{literal(words['report_its_settings'])}**")
    for page, params in links:
        st.page_link(page.path, label=literal(page.name), icon=page.icon, query_params=params)

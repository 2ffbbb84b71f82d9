"""A run costs less than Streamlit asks for it, and the browser is told the same."""

import ast
import asyncio
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from streamlit import config
from streamlit.components.v2.bidi_component.main import BidiComponentMixin
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.app_session import AppSession, AppSessionState
from streamlit.testing.v1 import AppTest

from ui.kit.server import runs

MADE = AppSession._create_new_session_message  # Streamlit's own: no test starts a server in this process
PAGES = {"one": {"page_name": "One_block", "icon": ""}, "two": {"page_name": "Depth", "icon": ":material/stacks:"}}


class Session(AppSession):
    """As much of one as the message is made from."""

    def __del__(self):
        """There is nothing to shut down."""

    def __init__(self, pages):
        self.id, self._run_on_save, self._state = "somebody", False, AppSessionState.APP_NOT_RUNNING
        self._script_data = SimpleNamespace(name="app", is_hello=False, main_script_path="/somewhere/app.py")
        self._pages_manager = SimpleNamespace(
            main_script_path="/somewhere/app.py", main_script_hash="main", get_pages=lambda: pages
        )


def run(number: int, *fragments: str):
    return SimpleNamespace(script_run_id=f"run {number}", fragment_ids=list(fragments))


def both(session, page, begun, pages=None) -> tuple[ForwardMsg, ForwardMsg]:
    given = session, page, begun, pages
    return runs._begins(MADE, *given), MADE(*given)


def test_every_run_begins_with_the_message_that_streamlit_makes():
    session = Session(PAGES)
    for number, (page, fragments, state, saves) in enumerate(
        [
            ("one", (), "APP_NOT_RUNNING", False),
            ("one", (), "APP_IS_RUNNING", False),
            ("two", ("a", "b"), "APP_IS_RUNNING", False),
            ("one", ("c",), "APP_NOT_RUNNING", True),
            ("one", (), "APP_IS_RUNNING", False),
        ]
    ):
        session._state, session._run_on_save = AppSessionState[state], saves
        ours, theirs = both(session, page, run(number, *fragments))
        assert ours == theirs
        assert ours.new_session.page_script_hash == page and ours.metadata.run.fragment_ids == list(fragments)
        assert ours.new_session.custom_theme.light.primary_color == "#0060a0"


def test_a_component_is_known_by_its_key_as_streamlit_knows_it(monkeypatch):
    def page():
        import streamlit as st

        one = st.components.v2.component("one_of_a_test", html="<b></b>")
        for key, data in {"a": {"numbers": [1, 2]}, "b": {"b": 1, "a": 2}, "c": "text", "d": None}.items():
            one(key=key, data=data, on_told_change=lambda: None)

    def ids():
        return [each.proto.id for each in AppTest.from_function(page).run().get("bidi_component")]

    theirs = ids()
    monkeypatch.setattr(BidiComponentMixin, "_build_bidi_identity_kwargs", runs._known_by_its_key)
    assert ids() == theirs and len(set(theirs)) == 4


def test_every_component_has_a_key():
    """Without one Streamlit tells two of them apart by what they show, which is not asked for any more."""
    named, found = lambda node: getattr(node, "id", getattr(node, "attr", "")), 0
    for path in sorted((Path(__file__).parent.parent / "ui").rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        made = {
            named(target)
            for node in nodes
            if isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Call)
            and named(node.value.func) == "component"
            for target in node.targets
        }
        for call in (node for node in nodes if isinstance(node, ast.Call) and named(node.func) in made):
            assert "key" in {given.arg for given in call.keywords}, f"{path.name}, line {call.lineno}"
            found += 1
    assert found > 12


def test_it_is_made_once_until_the_pages_are_others():
    made, pages = [], {name: dict(each) for name, each in PAGES.items()}
    session = Session(pages)

    def make(*given):
        made.append(given)
        return MADE(*given)

    for number in range(5):
        runs._begins(make, session, "one", run(number), None)
    assert len(made) == 1
    fewer = {"one": PAGES["one"]}
    ours, theirs = both(session, "one", run(6), fewer)
    assert ours == theirs and len(ours.new_session.app_pages) == 1
    ours, theirs = both(session, "one", run(7))
    assert ours == theirs and len(ours.new_session.app_pages) == 2


def test_what_is_done_to_a_message_leaves_the_next_as_it_is():
    session = Session(PAGES)
    for number in range(3):
        message, theirs = both(session, "one", run(number))
        assert message == theirs
        message.new_session.main_script_path, message.hash = "elsewhere", "changed"


def test_who_sends_is_woken_once_for_all_that_has_come_and_does_it_in_order():
    done, woken, failed = [], [], []

    async def main():
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: failed.append(str(context["exception"])))
        session, soon = SimpleNamespace(_event_loop=loop), loop.call_soon_threadsafe
        loop.call_soon_threadsafe = lambda *given, **named: (woken.append(given), soon(*given, **named))

        def tell():
            for number in range(20):
                runs._soon(session, lambda number=number: done.append(number) if number != 7 else 1 / 0)

        tell()  # while the loop has no time to look
        await asyncio.sleep(0.01)
        assert done == [each for each in range(20) if each != 7] and len(woken) == 1
        await asyncio.gather(*(asyncio.to_thread(tell) for _ in range(5)))
        await asyncio.sleep(0.01)

    asyncio.run(main())
    assert sorted(done) == sorted(6 * [each for each in range(20) if each != 7]) and failed == ["division by zero"] * 6


def test_what_comes_while_it_is_done_is_done_too():
    done = []

    async def main():
        session = SimpleNamespace(_event_loop=asyncio.get_running_loop())
        runs._soon(session, lambda: runs._soon(session, lambda: done.append("inner")))
        await asyncio.sleep(0.01)

    asyncio.run(main())
    assert done == ["inner"]


def test_who_sends_and_says_so_itself_is_not_woken_and_from_another_thread_is():
    async def main():
        loop, woken = asyncio.get_running_loop(), []
        told = SimpleNamespace(eventloop=loop, need_send_data=asyncio.Event())
        soon, runtime = loop.call_soon_threadsafe, SimpleNamespace(_get_async_objs=lambda: told)
        loop.call_soon_threadsafe = lambda *given, **named: (woken.append(given), soon(*given, **named))
        runs._wake(runtime)
        assert told.need_send_data.is_set() and not woken
        told.need_send_data.clear()
        thread = threading.Thread(target=runs._wake, args=[runtime])
        thread.start()
        await asyncio.wait_for(told.need_send_data.wait(), 10)
        thread.join()
        assert len(woken) == 1

    asyncio.run(main())


def test_a_server_that_has_ended_is_told_nothing():
    loop = asyncio.new_event_loop()
    loop.close()
    for _ in range(2):
        runs._soon(SimpleNamespace(_event_loop=loop), lambda: pytest.fail("done"))


def test_no_traceback_is_printed_past_the_log():
    assert config.get_option("logger.enableRich") is False

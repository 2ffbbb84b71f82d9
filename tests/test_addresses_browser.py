"""Every page opens by its link without browser errors or requests to other servers."""

import base64
import http.client
import re
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from benchmarks.serving import ROOT, server, settle
from tests.conftest import LOOKED_FOR, console_errors
from ui.kit.page import ICON

pytestmark = pytest.mark.browser

PARAMETERS = {
    "": "",
    "One_block": "view=heads&compare=on&norm=RMSNorm&variants=ffn-off",
    "Depth": "show=grid&passes=4",
    "Training": "task=copy&steps=50",
    "Studies": "shown=runs",
    "Trained_model": "taken=words",
    "Claims": "shown=evidence",
    "Class": "code=XXXXX",
    "Lessons": "shown=one&lesson=heads",
}


def watched(chromium, address) -> tuple:
    """Return a page in the browser and a list that collects its errors."""
    page = chromium.new_page(viewport={"width": 1400, "height": 900})
    wrong = console_errors(page)
    page.on("pageerror", lambda event: wrong.append(str(event)))
    page.on("requestfailed", lambda event: wrong.append(f"failed: {event.url}"))
    page.on(
        "response",
        lambda event: (
            wrong.append(f"{event.status}: {event.url}")
            if event.status >= 400 and not event.url.endswith(LOOKED_FOR)
            else None
        ),
    )
    page.on(
        "request",
        lambda event: (
            None if event.url.startswith((address, "data:", "blob:")) else wrong.append(event.url)
        ),
    )
    return page, wrong


@pytest.mark.parametrize("name", PARAMETERS)
def test_pages_open_without_errors_or_foreign_requests(chromium, address, name):
    page, wrong = watched(chromium, address)
    for settings in sorted({"", PARAMETERS[name]}):
        page.goto(f"{address}/{name}?{settings}".rstrip("?"))
        settle(page)
    icon = page.locator("link[rel~=icon]").get_attribute("href")
    page.close()
    assert wrong == []
    assert icon == ICON


PLACES = """
  window.places = new Set()
  const look = () => {
    const input = document.querySelector(".st-key-answer_heads label input")
    const box = input?.closest("label").getBoundingClientRect()
    if (box?.width) window.places.add(`${Math.round(box.x)} ${Math.round(box.y)}`)
    requestAnimationFrame(look)
  }
  look()
"""


def test_clickable_elements_stay_where_they_first_were(chromium, address):
    """Content above a control and the page frame used to load later and move the control.

    With Streamlit's files in the browser's cache: at first they come in any order.
    """
    lesson = f"{address}/Lessons?shown=one&lesson=heads"
    page = chromium.new_page(viewport={"width": 1300, "height": 900})
    page.goto(lesson)
    settle(page)
    page.add_init_script(PLACES)
    page.goto(lesson)
    settle(page)
    x, y = zip(*(map(int, part.split()) for part in page.evaluate("[...window.places]")))
    page.close()
    assert len(set(x)) == 1 and max(y) - min(y) < 20, (x, y)


def test_pages_open_below_a_base_path(chromium):
    with server(below="/lab/blocks") as (address, _):
        page, wrong = watched(chromium, address)
        page.goto(address)
        settle(page)
        page.goto(f"{address}/Depth?passes=4")
        settle(page)
        page.get_by_role("link", name="One block").first.click()
        page.wait_for_url("**/lab/blocks/One_block")
        settle(page)
        assert page.locator("h1").inner_text() == "One block" and wrong == []
        page.close()


def test_browser_gets_in_through_nginx_on_any_port(address):
    """nginx must forward the browser's host with its port.

    Host, which docs/nginx.conf sends, must equal the browser's Origin: Streamlit refuses any other
    site's.
    """
    settings = (ROOT / "docs" / "nginx.conf").read_text()
    (variable,) = re.findall(r"proxy_set_header Host \$(\w+);", settings)
    host = {"host": "school.test", "http_host": "school.test:8500"}[
        variable
    ]  # nginx: $host has no port
    where = urlsplit(address)
    connection = http.client.HTTPConnection(where.hostname, where.port)
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    key = {"Sec-WebSocket-Key": base64.b64encode(bytes(16)).decode()}
    connection.request(
        "GET",
        "/_stcore/stream",
        headers={"Host": host, "Origin": "http://school.test:8500", **upgrade, **key},
    )
    assert connection.getresponse().status == 101
    assert "absolute_redirect off;" in settings
    connection.close()


def test_browser_caches_component_scripts_only(chromium, address):
    page = chromium.new_page()
    requests = []
    page.on(
        "request",
        lambda request: requests.append(request.url) if "/scripts/" in request.url else None,
    )
    page.goto(f"{address}/One_block")
    settle(page)
    page.close()
    assert len(requests) == len(set(requests)) >= 4, "each is asked for once"
    with urlopen(requests[0]) as answer:
        assert "immutable" in answer.headers["Cache-Control"]
        assert answer.headers["Content-Type"].startswith("text/javascript")
    with pytest.raises(HTTPError, match="404"):
        urlopen(f"{address}/scripts/{'0' * 20}.js")


@pytest.mark.parametrize("width", [800, 1024])
@pytest.mark.parametrize(
    "path", ["/One_block?weights=random&variants=norm-none", "/Training", "/Trained_model"]
)
def test_beside_an_open_sidebar_nothing_leaves_the_page(open_page, path, width):
    page = open_page(path, width=width)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    away = page.locator(".st-key-take_away").bounding_box()
    for item in page.locator(".st-key-head [data-name=title], .st-key-head .tabs").all():
        item = item.bounding_box()
        apart = (
            item["x"] + item["width"] <= away["x"]
            or away["y"] + away["height"] <= item["y"]
            or item["y"] + item["height"] <= away["y"]
        )
        assert apart, (item, away)

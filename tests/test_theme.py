"""The theme that a browser is told is the one that Streamlit reads from its options, however often it is asked for."""

import pytest
from streamlit import config
from streamlit.proto.NewSession_pb2 import CustomThemeConfig

from ui.kit.server import theme

SECTIONS = ["theme", *(f"theme.{each.value}" for each in config.CustomThemeCategories)]


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_is_what_streamlit_reads(section, monkeypatch):
    asked = []
    monkeypatch.setattr(theme, "_kept", {})
    monkeypatch.setattr(theme, "_read", lambda message, name: (asked.append(name), read(message, name)))
    read = theme.__dict__["app_session"]._populate_theme_msg
    wanted, first, second = CustomThemeConfig(), CustomThemeConfig(), CustomThemeConfig()
    read(wanted, section)
    theme._filled(first, section)
    theme._filled(second, section)
    assert first == second == wanted and asked == [section]
    assert section != "theme.light" or first.primary_color == "#0060a0"


def test_what_a_browser_is_told_may_be_changed_without_changing_what_is_kept():
    first = CustomThemeConfig()
    theme._filled(first, "theme.dark")
    first.primary_color = "#ffffff"
    second = CustomThemeConfig()
    theme._filled(second, "theme.dark")
    assert second.primary_color != "#ffffff"


def test_no_traceback_is_printed_past_the_log():
    assert config.get_option("logger.enableRich") is False

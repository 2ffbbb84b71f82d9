"""The theme, which Streamlit reads anew from all of its options for every run, six times: a tenth of what a move costs.

Imported by the server before there is a runtime: nothing that registers a component may be imported here.
"""

from streamlit.proto.NewSession_pb2 import CustomThemeConfig
from streamlit.runtime import app_session

_read = app_session._populate_theme_msg
_kept: dict[str, CustomThemeConfig] = {}


def read_once():
    """Options of the theme do not change while a server runs; from here on each section of them is read once."""
    app_session._populate_theme_msg = _filled


def _filled(message: CustomThemeConfig, section: str = "theme"):
    if section not in _kept:
        made = CustomThemeConfig()
        _read(made, section)
        _kept[section] = made
    message.MergeFrom(_kept[section])

"""A server that only shows models does not load torch's compiler.

The compiler costs 66 MB, and a second and a half before the first page.
"""

import subprocess
import sys

import pytest

OPENED = """
import sys
from core.model.config import Config
from core.model.parts import MENUS
from core.model.parts.init import Blank
from core.model.transformer import Transformer
from core.settings.setting import ConfigError

made = 0
for name, menu in MENUS.items():
    for entry in menu:
        try:
            config = Config(d_model=16, n_heads=2, n_layers=2, **{name: entry})
        except ConfigError:
            continue
        Transformer(config, ("a", "b"), Blank())
        made += 1
assert made > 30, made
print([each for each in ("torch._dynamo", "torch._inductor", "sympy") if each in sys.modules])
"""


@pytest.mark.slow
def test_model_from_file_loads_no_compiler():
    """This holds for every combination of parts."""
    done = subprocess.run(
        [sys.executable, "-c", OPENED], capture_output=True, text=True, timeout=120
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr

"""Python that computes the tables of a page with this package: a script or a Jupyter notebook."""

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from textwrap import fill, indent
from typing import Any, NamedTuple

import torch

from core.model.config import Config
from core.settings.device import Machine
from core.settings.setting import Settings

WIDTH = 100  # characters in a line
IMPORT = re.compile(r"^from (core\S*) import (.+)\n", re.MULTILINE)
INSTALL = """\
except ModuleNotFoundError as error:
    raise SystemExit(f"{error}. Install Ablation Lab: pip install -e ITS_FOLDER") from None
"""
UTF_8 = """\
if hasattr(sys.stdout, "reconfigure"):  # on Windows a pipe takes few characters
    sys.stdout.reconfigure(encoding="utf-8")
"""
SHOW = '''

def show(name, table):
    """Print a table as CSV below a line with its name."""
    print(f"# {name}")
    print(table.to_csv(index=False, na_rep="nan", lineterminator="\\n"), end="")


'''
NOTEBOOK = {
    "metadata": {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    },
    "nbformat": 4,
    "nbformat_minor": 4,
}


class Code(str):
    """Python source of a setting's value; other values are written as literals."""


class Table(NamedTuple):
    """Table of a script: its name, what it holds, and the code that assigns `NAME_table`."""

    name: str
    about: str
    code: str


def read_tables(text: str) -> dict[str, Table]:
    """Parse code into tables by name, each under a line "# %% name: about"; drop what is before."""
    tables = {}
    for cell in text.split("# %% ")[1:]:
        code = re.sub(r"^.*\n(# .*\n)*\n*", "", cell)
        heading = cell.removesuffix(code).strip().replace("\n#", "")
        name, _, about = heading.partition(": ")
        tables[name] = Table(name, about, code)
    return tables


@dataclasses.dataclass(frozen=True)
class Script:
    """Program that computes tables.

    Its code imports from core where it needs to; these imports are moved to the top.

    Args:
        title: Description of what it computes, one line.
        machine: Device and precision with which the app computed the same numbers.
        settings: Name to value.
        tables: The tables that it computes.
        code: Code that runs before that of the tables.
        note: A sentence or two for the reader.
    """

    title: str
    machine: Machine
    settings: Mapping[str, object]
    tables: Sequence[Table]
    code: str = ""
    note: str = ""

    def python(self) -> str:
        """Return the text of a .py file, which prints every table as CSV."""
        about = self._about('Prints tables as CSV, each below a line "# name".')
        cells = [_remove_imports(self.code)]
        for table in self.tables:
            heading = fill(f"{table.name}: {table.about}", WIDTH - 4).replace("\n", "\n# ")
            call = f'show("{table.name}", {table.name}_table)\n'
            cells.append(f"# %% {heading}\n{_remove_imports(table.code)}{call}")
        parts = [
            f'"""{self.title}\n\n{about}\n"""\n',
            "import sys\n",
            self._imports(),
            UTF_8,
            self._settings() + SHOW + "\n".join(filter(None, cells)),
        ]
        return "\n".join(parts)

    def notebook(self) -> str:
        """Return the text of an .ipynb file, which shows every table below its heading."""
        rows = "pd.options.display.max_rows = 1000  # longer tables are truncated\n"
        code = _remove_imports(self.code)
        cells = [
            _cell("markdown", f"# {self.title}\n\n{self._about('')}"),
            _cell("code", self._imports(rows)),
            _cell("code", self._settings() + rows),
        ]
        if code:
            cells.append(_cell("code", code))
        for table in self.tables:
            about = f"{table.about[0].upper()}{table.about[1:]}."
            cells.append(_cell("markdown", f"## {table.name}\n\n{about}"))
            cells.append(_cell("code", f"{_remove_imports(table.code)}{table.name}_table"))
        return json.dumps({"cells": cells} | NOTEBOOK, ensure_ascii=False, indent=1) + "\n"

    def _about(self, printed: str) -> str:
        """Return `printed`, the note and the device as text, filled to lines, no comment signs."""
        computed = (
            f"Ablation Lab computed the same numbers with PyTorch {torch.__version__} on "
            f"{self.machine.torch_device} in {self.machine.dtype}; elsewhere rounding differs."
        )
        return fill(" ".join(filter(None, (printed, self.note, computed))), WIDTH)

    def _imports(self, extra: str = "") -> str:
        """Return the imports for the script's code and `extra`, core's in a try with advice."""
        code = "\n".join([extra, self.code, *(table.code for table in self.tables)])
        modules: dict[str, set[str]] = {}
        for module, import_names in IMPORT.findall(code):
            modules.setdefault(module, set()).update(import_names.split(", "))
        ours = ""
        for module, names in sorted(modules.items()):
            ours += f"    from {module} import {', '.join(sorted(names))}\n"
        libraries = "import pandas as pd\n" if "pd." in code else ""
        if "torch." in code:
            libraries += "import torch\n"
        groups = [libraries, f"try:\n{ours}{INSTALL}"]
        return "\n".join(filter(None, groups))

    def _settings(self) -> str:
        """Return the assignments of the script's settings as Python code."""
        lines = []
        for name, value in self.settings.items():
            before = len(name) + 3
            if isinstance(value, Machine):  # with the device on which it computes
                written = f'Machine("{value.torch_device}", "{value.dtype}")'
            elif isinstance(value, Settings):
                written = write_settings_call(value, before)
            elif isinstance(value, list):
                written = split_text(value, before)
            else:
                written = value if isinstance(value, Code) else write_literal(value)
            lines.append(f"{name} = {written}\n")
        return "".join(lines)


def _remove_imports(code: str) -> str:
    """Return code without its lines "from core… import …"."""
    return IMPORT.sub("", code).lstrip("\n")


def _cell(kind: str, text: str) -> dict[str, Any]:
    """Return a notebook's cell with a text; `kind` is "markdown" or "code"."""
    lines = text.strip("\n").splitlines(keepends=True)
    cell = {"cell_type": kind, "metadata": {}, "source": lines}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def quoted(text: str) -> str:
    """Write a string as a Python literal, in double quotes unless that needs more backslashes."""
    written = repr(text)
    return f'"{written[1:-1]}"' if written[0] == "'" and '"' not in written else written


def write_literal(value: object) -> str:
    """Write text, a frozenset of names, a tuple or a list as a Python literal; else its repr()."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, frozenset):
        return f"frozenset({write_literal(sorted(value)) if value else ''})"
    if isinstance(value, tuple):
        return f"({', '.join(map(write_literal, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(map(write_literal, value))}]"
    return repr(value)


def enclose(items: Sequence[str], pair: str = "[]", before: int = WIDTH) -> str:
    """Write items in brackets: one line if it fits behind `before`, else (default) many."""
    line = ", ".join(items)
    if before + len(line) + 3 <= WIDTH and "\n" not in line:
        return f"{pair[0]}{line}{pair[1]}"
    lines = indent("".join(f"{item},\n" for item in items), "    ")
    return f"{pair[0]}\n{lines}{pair[1]}"


def split_text(tokens: Sequence[str], before: int) -> str:
    """Write tokens as code: "a text".split(), or a list where one has spaces or escapes."""
    text = " ".join(tokens)
    if text.split() != list(tokens) or not text.isprintable() or '"' in text or "\\" in text:
        return enclose([quoted(token) for token in tokens], before=before)
    if before + len(text) + len('"".split()') <= WIDTH:
        return f'"{text}".split()'
    lines = fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)
    return f'"""\n{lines}\n""".split()'


def write_call(name: str, arguments: Mapping[str, str], before: int) -> str:
    """Write the code of a call with named arguments, which stands behind `before` characters."""
    items = [f"{argument}={value}" for argument, value in arguments.items()]
    return name + enclose(items, "()", before + len(name))


def write_settings_call(settings: Settings, before: int = 0) -> str:
    """Write the code Config(…), or of other settings, with all values that are not defaults."""
    arguments = {name: write_literal(getattr(settings, name)) for name in settings.write()}
    return write_call(type(settings).__name__, arguments, before)


def write_changed_config(config: Config, baseline: Config, before: int) -> str:
    """Write the code BASELINE.replace(name=value, …) with a config's changes, else BASELINE."""
    changes: dict[str, Any] = {}
    replaced = baseline
    for _ in range(2):  # replace() also changes what follows: key-value heads, biases of attention
        for name in baseline.settings():
            if getattr(config, name) != getattr(replaced, name):
                changes[name] = getattr(config, name)
        replaced = baseline.replace(**changes)
    if not changes:
        return "BASELINE"
    written = {name: write_literal(value) for name, value in changes.items()}
    return write_call("BASELINE.replace", written, before)


def write_variants(variants: Mapping[str, Config], baseline: Config) -> Code:
    """Write the code of a dict of configs by name, each as its changes of BASELINE."""
    entries = []
    for name, config in variants.items():
        key = f"{quoted(name)}: "
        entries.append(key + write_changed_config(config, baseline, 4 + len(key)))
    return Code(enclose(entries, "{}"))

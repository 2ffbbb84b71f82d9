"""How a script is laid out: what it says about itself, imports, settings, definitions, the call; and settings as text."""

import dataclasses
import re
import textwrap
from collections.abc import Sequence
from string import Template
from typing import Any

import torch

from core.export.bundle.bundle import Bundle
from core.export.bundle.literals import WIDTH, braces, literal, quoted
from core.export.bundle.source import Import
from core.model.config import Config
from core.settings.device import Machine
from core.settings.setting import Settings
from core.train.settings import Training

FLAVOURS = ("core", "torch")
ABOUT: dict[type[Settings], str] = {
    Config: "The settings of a model; where nothing else is said, they are these.",
    Training: "The settings of a training, the same for every model.",
}

SHOW = """\
def show(name, table):
    print(f"# {name}")
    table.to_csv(sys.stdout, index=False, na_rep="nan")


if hasattr(sys.stdout, "reconfigure"):  # names may hold any character; a notebook's output takes them as they are
    sys.stdout.reconfigure(encoding="utf-8")"""
MISSING = """\
except ModuleNotFoundError as error:
    raise SystemExit(
        f"{error}. Run this script in the folder of Ablation Lab, or install that first: pip install -e FOLDER"
    ) from None
"""


def checked(flavour: str) -> str:
    """The flavour. Raises ValueError if it is none."""
    if flavour not in FLAVOURS:
        raise ValueError(f"flavour is {flavour!r}; it must be one of {', '.join(FLAVOURS)}")
    return flavour


def core_script(about: str, machine: Machine, form: str, **settings: object) -> str:
    """A script that imports this repository: a form whose $NAMES are put in; $SHOW and $MACHINE are known."""
    run = "Save this file in the folder of the repository and run it there: `python script.py`."
    machine_text = f'Machine("{machine.torch_device}", "{machine.dtype}")'
    script = Template(form).substitute(settings, SHOW=SHOW, MACHINE=machine_text)
    return f"{_docstring(about, machine, run)}\n\n{guarded(script)}"


def guarded(script: str) -> str:
    """Sort the imports of core in a script, and let it say what to install where core is missing."""

    def tried(lines: re.Match[str]) -> str:
        imports = "".join(sorted(lines[0].splitlines(True)))
        return f"try:\n{textwrap.indent(imports, '    ')}{MISSING}"

    return re.sub(r"(?:^from core.*\n)+", tried, script, flags=re.MULTILINE)


def torch_script(
    bundle: Bundle, about: str, machine: Machine, given: Sequence[Settings], lines: list[str], call: str
) -> str:
    """A script that imports torch alone. given: settings, each of which becomes a class; lines: what else is set."""
    run = "Nothing but torch is needed: run this file with `python script.py`."
    parts = [
        f"{_docstring(about, machine, run)}\n\n{bundle.import_text(Import('torch', None, 'torch'))}",
        *[bundle.settings_text(each, ABOUT[type(each)]) for each in given],
        "\n".join([*lines, f'DEVICE = "{machine.torch_device}"', f"DTYPE = {machine.precision}"]),
        bundle.text(),
        f'if __name__ == "__main__":\n    {call}\n',
    ]
    return "\n\n\n".join(parts)


def _docstring(about: str, machine: Machine, run: str) -> str:
    lines = "\n".join("    " + line.removeprefix("# ") for line in about.splitlines())
    return f'''"""Prints, as CSV, numbers that Ablation Lab shows; each table begins with a line "# name":

{lines}

The app's numbers were made with PyTorch {torch.__version__} on {machine.torch_device} in {machine.dtype}. Elsewhere they agree up to
rounding. {run}
"""'''


def values(*settings: Settings) -> dict[str, set[Any]]:
    """Setting -> the values that it takes in any of them."""
    taken: dict[str, set[Any]] = {}
    for each in settings:
        for field in dataclasses.fields(each):
            taken.setdefault(field.name, set()).add(getattr(each, field.name))
    return taken


def settings_call(settings: Settings, before: int = 0) -> str:
    """Config(…), or another kind of settings, with everything that is not its default."""
    given = {name: getattr(settings, name) for name in settings.write()}
    return call_text(f"{type(settings).__name__}({{}})", named(given), before)


def changed_text(config: Settings, baseline: Settings, form: str, same: str, before: int) -> str:
    """Settings as what they change in others of their kind, d_ff and d_head too where they only follow: form, or same."""
    names = [field.name for field in dataclasses.fields(baseline)]
    changes = {name: getattr(config, name) for name in names if getattr(config, name) != getattr(baseline, name)}
    if isinstance(baseline, Config):  # replace() also changes what follows: key-value heads, biases of attention
        replaced = baseline.replace(**changes)
        changes |= {name: getattr(config, name) for name in names if getattr(config, name) != getattr(replaced, name)}
    return call_text(form, named(changes), before) if changes else same


def variants_text(configs: dict[str, Config], baseline: Config, form: str, same: str) -> str:
    """A dict of configs, each written as what it changes in the baseline."""
    entries = [
        f"{quoted(name)}: {changed_text(config, baseline, form, same, 4 + len(quoted(name)) + 2)}"
        for name, config in configs.items()
    ]
    return braces(entries, before=WIDTH)


def named(values: dict[str, Any]) -> list[str]:
    """Arguments with their names."""
    return [f"{name}={literal(value)}" for name, value in values.items()]


def call_text(form: str, arguments: list[str], before: int) -> str:
    """A call: form has {} where the arguments stand. before: what stands left of it in its line."""
    return form.format(braces(arguments, ("", ""), before + len(form)))

"""Write docs/reference.md from the menus: `make reference`.

It lists every part, task, statistic and setting with its words on screen. A test compares the page
with what this script makes.
"""

from pathlib import Path

from core.experiments.depth.depth import Depth, blocks
from core.experiments.trained.knockout import effect
from core.experiments.training.plan import otherwise
from core.experiments.weights import weights
from core.measure.stream_statistics import statistic
from core.measure.tensor_meters import meter
from core.model import knockout
from core.model.config import Config
from core.model.generate import Sampling
from core.model.parts import MENUS
from core.model.variants import ablation
from core.settings.device import Machine
from core.settings.menu import Menu
from core.settings.setting import Settings
from core.study.shipped import shipped
from core.tasks import task
from core.teaching.claims import claim
from core.train.match import match, search
from core.train.settings import Training, decay, optimiser

PAGE = Path(__file__).parent.parent / "docs" / "reference.md"
PARTS = (
    *MENUS.values(),
    weights,
    ablation,
    knockout.part,
    knockout.mode,
    blocks,
    optimiser,
    decay,
    otherwise,
    match,
    search,
)
NUMBERS = (meter, statistic, effect)
SETTINGS = {
    "A block and a stack": Config,
    "Training": Training,
    "Depth": Depth,
    "The next word": Sampling,
    "The machine": Machine,
}


def main():
    """Write docs/reference.md."""
    PAGE.write_text(reference_page())


def reference_page() -> str:
    """Return the whole of docs/reference.md as Markdown."""
    return "\n".join(
        [
            "# Reference",
            "",
            (
                "Made from the menus by `make reference`. A name in the first column is what stands"
                " in links, in studies and in Python."
            ),
            "",
            "## Parts",
            *(line for menu in PARTS for line in menu_section(menu)),
            "",
            "## Tasks",
            *task_table(),
            "",
            "## What is measured",
            *(line for menu in NUMBERS for line in menu_section(menu)),
            "",
            "## What ships",
            *(line for menu in (shipped, claim) for line in menu_section(menu)),
            "",
            "## Settings",
            *(line for title, kind in SETTINGS.items() for line in settings_table(title, kind)),
            "",
        ]
    )


def menu_section(menu: Menu) -> list[str]:
    """Return a menu as a Markdown heading and a table: name, label on screen, what it does."""
    rows = [(f"`{name}`", menu.label(name), menu.help(name)) for name in menu]
    return [
        "",
        f"### {menu.title}",
        "",
        *markdown_table(("name", "on screen", "what it does"), rows),
    ]


def task_table() -> list[str]:
    """Return the tasks as a Markdown table, with the component that each needs."""
    rows = [
        (
            f"`{name}`",
            task.help(name),
            entry.needs,
            f"{entry.length}",
            f"{100 * entry.marginal(entry.vocabulary):.0f} %",
        )
        for name, entry in task.items()
    ]
    return [
        "",
        *markdown_table(
            ("name", "what is learnt", "the part it needs", "tokens", "guessing gets right"), rows
        ),
    ]


def settings_table(title: str, settings_class: type[Settings]) -> list[str]:
    """Return a class's settings as a Markdown table: name, label, values, default, help."""
    usual = settings_class()
    rows = [
        (
            f"`{name}`",
            definition.label,
            definition.allowed(),
            (
                "follows others"
                if definition.follows
                else f"`{definition.write(getattr(usual, name))}`"
            ),
            definition.help,
        )
        for name, definition in settings_class.settings().items()
    ]
    return [
        "",
        f"### {title}",
        "",
        *markdown_table(("name", "on screen", "may be", "at first", "what it sets"), rows),
    ]


def markdown_table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    """Return the lines of a Markdown table, with bars in cells escaped."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return [f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *cells)]


if __name__ == "__main__":
    main()

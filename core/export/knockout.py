"""A script that prints what a knock-out costs, as the page "Trained model" shows it."""

from core.export.forms import guarded
from core.model.knockout import Cut, write_cuts

TEMPLATE = '''"""{title}

Run it in the repository of Ablation Lab; behind its name may stand the folder of another model.
"""

import sys

import torch

from core.checkpoints import family, files
from core.experiments.trained import contributions
from core.experiments.trained.knockout import Bench
from core.experiments.trained.questions import questions
from core.experiments.trained.tables import by_distance, readings, told
from core.model.knockout import read_cuts

torch.set_num_threads(1)
folders = [each for each in sys.argv[1:2] if not each.startswith("-")]  # a notebook has an option of its own there
{comment}opened = files.from_folder(folders[0]) if folders else {model}
bench = Bench(opened, questions(opened, {texts}))
cuts, problems = read_cuts({cuts!r}, opened.config)
assert not problems, problems

for each in readings(bench):  # share of attention on the subject, across a clause
    print(f"head {{each.layer + 1}}.{{each.head + 1}}: verb {{each.verb.mean:.6f}}, word before {{each.before.mean:.6f}}")
effect = bench.effect(cuts, {mode!r})
print(told(effect, bench.baseline).to_string())
print(by_distance(effect, bench.questions, 20).sort_values("value").to_string())
print((contributions.takeover(bench, cuts, {mode!r}) if cuts else contributions.table(bench)).to_string())
'''


ELSEWHERE = "models/name_of_the_model"
COMMENT = "# Put the model's folder (model.safetensors and config.json) there, or name it behind the script's name.\n"


def knockout_script(
    folder: str, cuts: tuple[Cut, ...], mode: str, texts: int, member: tuple[str, int] | None = None
) -> str:
    """folder: where the model lies, as seen from the repository; "": the script says where to put it. member: which of the family
    it is, with its seed, instead of a folder."""
    title = "What a knock-out costs." if cuts else "What the heads of a trained model do."
    comment = "" if folder or member else COMMENT
    model = f"family.opened({member[0]!r}, {member[1]})" if member else _opening(folder)
    script = TEMPLATE.format(title=title, comment=comment, model=model, cuts=write_cuts(cuts), mode=mode, texts=texts)
    return guarded(script)


def _opening(folder: str) -> str:
    """Return the call that opens a folder: one that ships lies in the repository, wherever the script is run."""
    inside = folder.removeprefix("models/")
    return f"files.from_folder(files.ROOT / {inside!r})" if folder else f"files.from_folder({ELSEWHERE!r})"

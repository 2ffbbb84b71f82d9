from core.experiments.block import compare as experiment
from core.figures.charts import stream as charts
from core.figures.spec import word
from ui.block.context import view
from ui.kit import beside
from ui.kit.page import chart, figure
from ui.pictures.heatmaps import heatmaps
from ui.shared.base import sure, weights


@view
def change(context):
    """Tokens: how much each word's vector changed."""
    forward_pass = context.forward_pass
    table = experiment.per_token(forward_pass)
    table["label"] = [word(at, text) for at, text in enumerate(table.word)]
    most = table.loc[table.distance.fillna(0).idxmax()]
    farthest = f"Farthest: “{most.word}”, {most.distance:.3g}." if most.distance > 0 else "None of them moved."
    left, right = beside.columns(2)
    with left:
        figure("How far did each word move?", sure(farthest, *table.distance), weights(forward_pass))
        chart(charts.per_token(forward_pass.n_real <= 24, "Euclidean distance, output − input"), table.rename(columns={"distance": "value"}), "Distance from input to output, by token.", height=250)  # fmt: skip
    with right:
        figure(
            "Does it still point the same way?",
            sure(f"Cosine similarity to its input, {table.cosine.mean():.3f} on average.", table.cosine.mean()),
            weights(forward_pass),
        )
        chart(charts.per_token(forward_pass.n_real <= 24, "cosine similarity"), table.rename(columns={"cosine": "value"}), "Cosine similarity of output and input, by token.", height=250)  # fmt: skip
    both = experiment.token_similarity(forward_pass)
    before, after = (experiment.mean_similarity(matrix) for matrix in both)
    sentence = "There is only one."
    if forward_pass.n_real > 1:
        sentence = sure(f"Average over pairs of tokens: {before:.3f} before, {after:.3f} after.", before, after)
    figure("How alike are the words, before and after?", sentence, weights(forward_pass))
    labels = forward_pass.labels[: forward_pass.n_real]
    heatmaps(
        "similarity", both, labels, labels, titles=["before: input", "after: output"], what="cosine similarity",
        alt="Cosine similarity between tokens, before and after.", diverging=True, arrow="and", height=380,
    )  # fmt: skip

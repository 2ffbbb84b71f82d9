"""With and without: the baseline and one variant of it beside each other, in the drawing and in every view."""

import dataclasses
from functools import partial

import streamlit as st

from core.experiments.forward import forward
from core.model.variants import NOW, Variant, decode, lineup
from ui.block.context import BlockContext
from ui.block.summary import summary
from ui.kit import beside, pins
from ui.kit.page import literal
from ui.kit.pages import ONE_BLOCK
from ui.kit.panel.control import among, of
from ui.kit.panel.panel import bar
from ui.kit.session.values import put
from ui.pictures import drawing

ALONE = ("compare",)  # views that show all variants by themselves


def with_and_without(context: BlockContext):
    """The block and the view that is open; and the same of the variant that stands beside it, where there is one."""
    variants, left_out = lineup(context.forward_pass.config, context.pins)
    baseline, *others = variants
    variant = next(
        (each for each in others if _text(context, each) == context.look.beside), others[0] if others else None
    )
    picture, view = st.columns([3, 7], gap="medium")
    with picture:
        figures = summary(_of(context, baseline).forward_pass)
        _drawn(context, baseline, None, figures * (variant is None))
        if variant:
            its = summary(_of(context, variant).forward_pass)
            _drawn(context, variant, baseline, f"{its}<br><br>Baseline: {figures}")
    with view:
        if context.look.view in ALONE:
            ONE_BLOCK.open_view(context)
            return
        for reason in left_out:
            st.caption(literal(reason))
        if variant is None:
            ONE_BLOCK.open_view(context)
            return
        texts = [_text(context, each) for each in others]
        which = among("Beside", "beside", _text(context, variant), texts, [each.name for each in others])
        bar("beside", [*[which] * (len(others) > 1), of(context.look, "difference")])
        sides = [
            (_name(context, each), partial(ONE_BLOCK.open_view, _of(context, each))) for each in (baseline, variant)
        ]
        colours = {_name(context, each): each.colour for each in (baseline, variant)}
        less = " − baseline, where that can be drawn" * context.look.difference
        beside.beside(
            sides,
            lambda name: pins.marks([(colours[name], name + less * (colours[name] > 0), None)], []),
            context.look.difference,
            {
                name: max(getattr(each.config, f"n_{name}s") for each in (baseline, variant))
                for name in ("layer", "head")
            },
        )


def _of(context: BlockContext, variant: Variant) -> BlockContext:
    """What a view is handed of a variant."""
    seen = context.forward_pass
    if variant.config == seen.config:
        return context
    other = forward(variant.config, seen.tokens[: seen.n_real], seen.machine, seen.dropout)
    return dataclasses.replace(context, forward_pass=other)


def _name(context: BlockContext, variant: Variant) -> str:
    return f"baseline: {pins.baseline_words(context.pins)}" if variant.colour == 0 else variant.name


def _text(context: BlockContext, variant: Variant) -> str:
    """A variant as the link names it."""
    return "now" if variant.colour == NOW else context.pins.slots[variant.colour - 1]


def _drawn(context: BlockContext, variant: Variant, baseline: Variant | None, below: str):
    """A drawing in which a click takes a part out, or puts it back; of a variant, with its name above. below: as HTML."""
    seen = _of(context, variant).forward_pass
    if baseline:
        pins.marks([(variant.colour, variant.name, None)], [])

    def clicked(text: str):
        changes = decode(text, "variants")
        if baseline is None:
            pins.toggle(changes, variant.config, lambda text: put(beside=text))
        elif variant.colour == NOW:
            put(**changes)
        else:
            pins.vary(variant.colour - 1, changes, baseline.config)

    drawing.block(
        seen,
        context.look.layer_of(seen),
        key="drawing" if baseline is None else "drawing_beside",
        usual=baseline and baseline.config,
        below=below,
        on_pick=clicked,
    )

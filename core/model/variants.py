"""Baseline and variants: each variant is what differs from the baseline, and is named by it.

In a link a difference is written "n_heads-8__norm-none", and several are joined by "~". Variants
are kept as differences, not as whole settings: so when the baseline moves, they move with it and
stay comparable.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from core.model.config import Config
from core.settings.menu import Menu
from core.settings.setting import ConfigError, Settings, setting
from core.settings.wording import distinct, shorten, some_of

AND = "__"
NEXT = "~"
NOTHING = "none"
PLAIN = "defaults"
MOST = 4

Changes = dict[str, Any]  # the settings that are other than in a baseline
ablation: Menu[Changes] = Menu("Ablations")  # one click each
ablation.add(
    "no_residual",
    {"residual_attention": False, "residual_ffn": False},
    label="− residuals",
    help="removes both residual connections.",
)
ablation.add("no_norm", {"norm": "none"}, label="− norm", help="no normalisation.")
ablation.add(
    "no_ffn", {"ffn": False}, label="− FFN", help="attention only, no per-token computation."
)
ablation.add(
    "no_attention",
    {"attention": False},
    label="− attention",
    help="tokens cannot exchange information.",
)
ablation.add(
    "no_positions", {"position": "none"}, label="− positions", help="no position information."
)
ablation.add(
    "no_scaling",
    {"scale": False},
    label="− scaling",
    help="no division by √d_k before the softmax.",
)
ablation.add(
    "post_norm",
    {"placement": "post"},
    label="post-norm",
    help="normalises the residual stream after each sum.",
)
ablation.add(
    "identity_activation",
    {"activation": "identity"},
    label="identity activation",
    help="the feed-forward network becomes a linear map.",
)
ablation.add("one_head", {"n_heads": 1}, label="1 head", help="a single head of width d_model.")


def encode(changes: Changes) -> str:
    """Return changes as text for a link, "n_heads-8__norm-none", in Config's order; "" for none."""
    settings = Config.settings()
    return AND.join(
        f"{name}-{settings[name].write(changes[name])}" for name in settings if name in changes
    )


def decode(text: str, field: str) -> Changes:
    """Parse changed settings from a link, each by itself; ConfigError about `field` if invalid."""
    settings = Config.settings()
    changes = Changes()
    for part in text.split(AND):
        name, _, value = part.partition("-")
        if name not in settings:
            names = ", ".join(settings)
            raise ConfigError(
                field,
                f"{field} names {shorten(name)}, which is not a setting; settings are {names}.",
            )
        try:
            changes[name] = settings[name].read(name, value)
        except ConfigError as error:
            raise ConfigError(field, f"{field}: {error}") from None
    return changes


def apply(changes: Changes, baseline: Config) -> Config:
    """Return the baseline with changes; derived values such as d_ff follow. ConfigError if bad."""
    values: Changes = {
        name: None if baseline.follows(name) else getattr(baseline, name)
        for name in Config.settings()
    }
    return Config(**(values | changes))


def difference(config: Config, baseline: Config) -> Changes:
    """Return the changes that apply() needs to make the baseline this config; {} if equal.

    Values that follow from these are left out.
    """
    settings = Config.settings()
    changes = {
        name: getattr(config, name)
        for name in settings
        if getattr(config, name) != getattr(baseline, name)
    }
    following = [name for name in settings if settings[name].follows]
    changes |= {name: getattr(config, name) for name in following}
    for name in following:
        remaining = {other: value for other, value in changes.items() if other != name}
        with suppress(
            ConfigError
        ):  # it could not be what it would follow: RoPE refuses an odd d_head
            changes = remaining if apply(remaining, baseline) == config else changes
    return changes


def name_of(changes: Changes, between: str = ", ") -> str:
    """Name a variant by its changes, in Config's order: "8 heads, − norm"; "" for none."""
    settings = Config.settings()
    names = [settings[name].describe_change(changes[name]) for name in settings if name in changes]
    both = [
        settings[name].describe_change(False) for name in ("residual_attention", "residual_ffn")
    ]
    if all(name in names for name in both):
        names[names.index(both[0])] = "− residuals"
        names.remove(both[1])
    return between.join(names)


@dataclass(frozen=True)
class Pins(Settings):
    """Baseline and variants of a comparison, as text.

    Raises ConfigError with the valid rest.
    """

    baseline: str = setting(
        "",
        "Baseline",
        "The pinned settings, as differences from the defaults; empty: the current settings.",
        group="Pins",
    )
    variants: str = setting(
        NOTHING,
        "Variants",
        "Up to four, joined by ~: what each changes in the baseline; nothing between two ~ is an"
        " empty slot.",
        group="Pins",
    )

    def _check_together(self) -> None:
        """Normalise `variants` in place; ConfigError for bad ones, too many, or a bad baseline."""
        if self.baseline not in ("", PLAIN):
            try:
                Config(**decode(self.baseline, "baseline"))
            except ConfigError as error:
                where = "" if error.field == "baseline" else "baseline: "
                raise ConfigError("baseline", f"{where}{error}", "") from None
        valid = []
        problems = []
        for text in self.variants.split(NEXT) if self.variants not in ("", NOTHING) else []:
            try:
                text = encode(decode(text, "variants")) if text else ""
                valid += [text] if not text or text not in valid else []
            except ConfigError as error:
                problems.append(str(error))
        full = [text for text in valid if text]
        if len(full) > MOST:
            problems.append(
                f"variants lists {len(full)}; at most {MOST} can be compared, so only the first"
                f" {MOST} are used."
            )
        if problems:
            raise ConfigError("variants", some_of(problems), join_slots(full[:MOST]))
        object.__setattr__(self, "variants", join_slots(valid))

    @property
    def slots(self) -> list[str]:
        """Variants by slot as text; "" for a removed one, so that others keep their colour."""
        return [] if self.variants == NOTHING else self.variants.split(NEXT)

    @property
    def texts(self) -> list[str]:
        """Variants as text, without empty slots."""
        return [text for text in self.slots if text]

    @property
    def changes(self) -> list[Changes]:
        """Changed settings of each variant, in the order of slots, without empty ones."""
        return [decode(text, "variants") for text in self.texts]

    def place_variants(self, texts: list[str]) -> str:
        """Return these variants for a link: known ones keep slots, new ones fill free ones."""
        slots = [text if text in texts else "" for text in self.slots]
        for text in texts:
            if text not in slots:
                index = slots.index("") if "" in slots else len(slots)
                slots[index : index + 1] = [text]
        return join_slots(slots)

    def read_baseline(self) -> Config | None:
        """Return the pinned baseline, or None where the current settings are the baseline."""
        if not self.baseline:
            return None
        return Config(**({} if self.baseline == PLAIN else decode(self.baseline, "baseline")))


def join_slots(slots: list[str]) -> str:
    """Join slots for a link, "none" if all are empty; drop empty ones at the end or over MOST."""
    end = max((index for index, text in enumerate(slots, 1) if text), default=0)
    dropped = set(
        [index for index, text in enumerate(slots[:end]) if not text][: max(0, end - MOST)]
    )
    return (
        NEXT.join(text for index, text in enumerate(slots[:end]) if index not in dropped) or NOTHING
    )


def encode_baseline(config: Config) -> str:
    """Return a config as text for Pins.baseline: its changes, or "defaults" if it has none."""
    return encode(difference(config, Config())) or PLAIN


NOW = MOST + 1  # the colour of the sidebar's settings beside a pinned baseline


@dataclass(frozen=True)
class Variant:
    """Model in a comparison: name, settings, colour (0 baseline, 1 to 4 variants, 5 now)."""

    name: str
    config: Config
    colour: int = 0


def lineup(config: Config, pins: Pins, **fixed: Any) -> tuple[list[Variant], list[str]]:
    """List baseline, variants, and beside a pinned baseline the current settings; also notes.

    Notes are sentences on variants left out; no model is listed twice. `fixed` are settings that
    are the same for all, whatever the pins say.
    """
    pinned = pins.read_baseline()
    baseline = replace(pinned or config, **fixed)
    variants = [Variant("baseline", baseline)]
    notes = []
    for slot, text in enumerate(pins.slots, 1):
        if not text:
            continue
        changes = decode(text, "variants")
        name = name_of(changes)
        try:
            variant_config = replace(apply(changes, baseline), **fixed)
        except ConfigError as error:
            notes.append(f"{name} skipped: {error}")
            continue
        if variant_config == baseline:
            notes.append(f"{name} skipped: same as the baseline.")
            continue
        twin = next((other for other in variants if other.config == variant_config), None)
        if twin:
            notes.append(f"{name} skipped: same as {twin.name}.")
        else:
            variants.append(Variant(name, variant_config, slot))
    now = replace(config, **fixed)
    if pinned and all(now != other.config for other in variants):
        variants.append(Variant("now: " + name_of(difference(now, baseline)), now, NOW))
    # A name shows six digits of a number: two variants may read alike, and pages know them by their
    # names.
    names = distinct(variant.name for variant in variants)
    return [replace(variant, name=name) for variant, name in zip(variants, names)], notes

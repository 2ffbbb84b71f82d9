"""Names of files, from what somebody has called something."""

import re

LONGEST = 60  # letters


def slug(name: str, number: int | None = None) -> str:
    """A name for a file: small letters, digits and underscores, whole words as far as they have room. number: put behind it,
    where two that are called alike must not be one file."""
    plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    if len(plain) > LONGEST:
        plain = plain[: LONGEST + 1].rpartition("_")[0] or plain[:LONGEST]
    return (plain or "table") + (f"_{number}" if number is not None else "")

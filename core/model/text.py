"""Words -> tokens. One token per word or punctuation mark, as typed; nothing is interpreted.

A letter with an accent can be one character or two (Unicode's forms NFC and NFD): both are the same
token, in NFC.
"""

import unicodedata
from dataclasses import dataclass

from core.settings.setting import ANY, ConfigError, Settings, setting

MAX_TOKENS = 256
MAX_CHARACTERS = 10_000
PAD = "<pad>"
UNKNOWN = "<unk>"

JOINERS = {"\u200d", "\ufe0e", "\ufe0f", "\u20e3"}  # zero-width joiner, variation selectors, keycap
INSIDE_WORD = {
    "'",
    "’",
    "-",
    "\u200c",
}  # don't, O’Neil, re-read, and the Persian zero-width non-joiner
# Control, formatting, private characters, and accents alone. Unassigned ones may be emoji newer
# than Python.
HIDDEN = ("Cc", "Cf", "Cs", "Co", "Mn", "Mc", "Me")
SOFT_HYPHEN = "\u00ad"


def split_words(text: str) -> list[str]:
    """Split a text into words, with case and inner apostrophes and hyphens, and each other mark.

    Emoji made of several characters (families, flags, skin tones) stay one token; letters keep
    their accents. White space separates; control and formatting characters are left out.
    """
    tokens: list[str] = []
    glue = False  # whether the next character may belong to the last token
    text = unicodedata.normalize("NFC", text.replace(SOFT_HYPHEN, ""))
    for index, c in enumerate(text):
        is_apostrophe = (  # or a hyphen: between two letters it belongs to the word
            c in INSIDE_WORD
            and glue
            and _in_word(tokens[-1][-1])
            and index + 1 < len(text)
            and _in_word(text[index + 1])
        )
        if (glue and _modifies(c)) or is_apostrophe:
            tokens[-1] += c
        elif c.isspace() or unicodedata.category(c) in HIDDEN:
            glue = False
        elif glue and _continues(tokens[-1], c):
            tokens[-1] += c
        else:
            tokens.append(c)
            glue = True
    return tokens


def _is_regional_indicator(c: str) -> bool:
    """Return whether c is a regional indicator, of which two make a flag."""
    return "\U0001f1e6" <= c <= "\U0001f1ff"


def _modifies(c: str) -> bool:
    """Return whether c changes the character before it: accents, joiners, skin tones, flag tags."""
    if c in JOINERS or unicodedata.category(c)[0] == "M":
        return True
    return "\U0001f3fb" <= c <= "\U0001f3ff" or "\U000e0020" <= c <= "\U000e007f"


def _in_word(c: str) -> bool:
    """Return whether c is a letter, a digit, an accent or an underscore."""
    return c == "_" or (unicodedata.category(c)[0] in "LNM" and c not in JOINERS)


def _continues(token: str, c: str) -> bool:
    """Return whether c belongs to the same token: letter, joined emoji or second half of a flag."""
    if token[-1] == "\u200d":
        return True
    if _is_regional_indicator(c):
        return len(token) == 1 and _is_regional_indicator(token)
    return _in_word(c) and (_in_word(token[-1]) or (len(token) > 1 and token[-1] in INSIDE_WORD))


def split_up_to_limit(text: str) -> tuple[list[str], list[str]]:
    """Split a text into at most 256 tokens; also return a note (in a list) if any were left out."""
    tokens = split_words(text)
    notes = []
    if len(tokens) > MAX_TOKENS:
        notes.append(f"The text has {len(tokens):,} tokens; only the first {MAX_TOKENS} are used.")
    return tokens[:MAX_TOKENS], notes


def shorten_token(token: str, width: int = 14) -> str:
    """Shorten a token to `width` characters, "…" included, for an axis label."""
    return token if len(token) <= width else token[: width - 1] + "…"


def vocabulary(tokens: list[str]) -> tuple[str, ...]:
    """Return the distinct tokens in order of first appearance, after the padding token."""
    return tuple(dict.fromkeys([PAD, *tokens]))


@dataclass(frozen=True)
class Example:
    """Example text with marked pairs of words: (reader, what it depends on)."""

    name: str
    text: str
    about: tuple[
        tuple[str, str], ...
    ]  # pairs of words; a word that stands twice is given as "word#2"

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Marked pairs of `about` as token indices from 0: (reader, what it depends on)."""
        return tuple(
            (self._find_token(reader), self._find_token(other)) for reader, other in self.about
        )

    def _find_token(self, word: str) -> int:
        """Return the index, from 0, of the token equal to a word; of its second for "word#2"."""
        word, _, nth = word.partition("#")
        return [index for index, token in enumerate(split_words(self.text)) if token == word][
            int(nth or 1) - 1
        ]


EXAMPLES = (
    Example(  # of words that the trained models know
        "Legal: intervening clause",
        "The defendant , who had signed the contracts , was liable .",
        (("was", "defendant"), ("liable", "defendant"), ("who", "defendant"), ("had", "who")),
    ),
    Example(
        "Legal: a motion to dismiss",
        "The defendant , who had filed a motion to dismiss , was liable .",
        (("was", "defendant"), ("liable", "defendant"), ("who", "defendant"), ("had", "who")),
    ),
    Example(
        "Legal: a distractor noun",
        "The court held that the tenants of the building were bound by the lease .",
        (("held", "court"), ("were", "tenants"), ("bound", "tenants")),
    ),
    Example(
        "Legal: a distant pronoun",
        "The company that sold the machines to the hospital denied that it had known of the"
        " defect .",
        (("sold", "company"), ("denied", "company"), ("it", "company")),
    ),
    Example(
        "Pronoun",
        "The animal did not cross the street because it was too tired .",
        (("cross", "animal"), ("it", "animal"), ("tired", "animal")),
    ),
    Example("Dog bites man", "The dog bites the man", (("bites", "dog"), ("man", "bites"))),
    Example(
        "A repeated word",
        "She can open the can with the can opener",
        (("can#2", "open"), ("can#3", "opener"), ("open", "She")),
    ),
)
DEFAULT_TEXT = EXAMPLES[0].text


def check_text(field: str, text: str) -> None:
    """Raise ConfigError for `field`, with a valid text as `instead`, if too long or unprintable.

    Too long: more than MAX_CHARACTERS, which are kept.
    """
    if len(text) > MAX_CHARACTERS:
        raise ConfigError(
            field,
            f"{field} has {len(text):,} characters; only the first {MAX_CHARACTERS:,} are used.",
            text[:MAX_CHARACTERS],
        )
    plain = "".join(c for c in text if c.isspace() or unicodedata.category(c) not in ("Cc", "Cs"))
    if plain != text:
        raise ConfigError(
            field, f"{field} contained control characters, which were removed.", plain
        )


@dataclass(frozen=True)
class Input(Settings):
    """Text of a pass.

    Raises ConfigError, with a usable text, for one that is too long or unprintable.
    """

    text: str = setting(
        DEFAULT_TEXT,
        "Sentence (text)",
        "Any text. Each word and punctuation mark is one token.",
        group="Text",
        high=ANY,
    )

    def _check_together(self) -> None:
        """Raise ConfigError, with a valid text as `instead`, if it is too long or unprintable."""
        check_text("text", self.text)

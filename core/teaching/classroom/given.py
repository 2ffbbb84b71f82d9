"""What visitors give: checked, cleaned, and of secrets only the hash."""

import hashlib
import math
import secrets
import unicodedata
from collections.abc import Iterable

from core.settings.wording import count, shorten
from core.teaching.classroom.limits import ANSWER, BECAUSE, NICKNAME, POLLS, QUESTION, ROUNDS, SECONDS, SURE, ClassError

# No I, L, O, Q, U, V, S and Z, which are taken for others or for digits, nor other vowels: a code is never a word.
LETTERS, LENGTH = "BCDFGHJKMNPRTWXY", 5
WORDS = {"nickname": "nickname", "because": "reason", "answer": "answer", "question": "question"}  # in a sentence
LONGEST = {"nickname": NICKNAME, "because": BECAUSE, "answer": ANSWER, "question": QUESTION}
# What a database or a page cannot hold. White space among it still parts two words; the rest goes without a trace.
HALVES = dict.fromkeys(range(0xD800, 0xE000))
CONTROLS = {c: " " if chr(c).isspace() else None for c in range(0xA0) if unicodedata.category(chr(c)) == "Cc"}
# What turns round, or opens or closes, a direction of writing, also of what others have written behind it (Unicode's annex 9, section 2).
TURNS = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)])
UNFIT = {**HALVES, **CONTROLS, **TURNS}
# Of which nothing is seen where they stand alone: kinds of characters, and letters and symbols that are blank.
UNSEEN, BLANK = ("Cf", "Me", "Mn", "Zl", "Zp", "Zs"), "\u115f\u1160\u2800\u3164\uffa0"


def text(name: str, value: str, needed: bool = False) -> str:
    """The text without white space around it, control characters, those that turn round the direction of writing, and halves of
    characters; all others stay as they are.
    A nickname that nobody would see is none.

    needed: whether it may not be empty. Raises ClassError where it is, or is longer than LONGEST[name] characters.
    """
    stripped, most = str(value).strip(), LONGEST[name]
    if len(stripped) > most:
        raise ClassError(
            name, f"The {WORDS[name]} has {count(len(stripped), 'character')}; it may have at most {most}."
        )
    cleaned = stripped.translate(UNFIT).strip()
    if name == "nickname" and all(unicodedata.category(c) in UNSEEN or c in BLANK for c in cleaned):
        cleaned = ""  # nobody would see it
    if needed and not cleaned:
        raise ClassError(name, f"The {WORDS[name]} is empty; it must have 1 to {most} characters.")
    return cleaned


def planned(questions: Iterable[str]) -> list[str]:
    """The names of questions, each once. Raises ClassError for more than a class may ask."""
    names = list(dict.fromkeys(text("question", each, needed=True) for each in questions))
    if len(names) > POLLS:
        raise ClassError("question", f"{len(names)} questions are planned; a class may ask at most {POLLS}.")
    return names


def sureness(value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= SURE:
        raise ClassError("sure", f"How sure you are is {shorten(value)}; it must be a whole number from 0 to {SURE}.")
    return value


def round_of(value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= ROUNDS:
        raise ClassError("round", f"The round is {shorten(value)}; it must be 1 or {ROUNDS}.")
    return value


def time_for(seconds: float | None) -> float | None:
    """How long a question is open, None: until it is closed by hand."""
    if seconds is None:
        return None
    good = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not good or math.isnan(seconds) or not 1 <= seconds <= SECONDS:
        raise ClassError("seconds", f"The time is {shorten(seconds)}; it must be 1 to {SECONDS:,} seconds, or none.")
    return float(seconds)


def new_code() -> str:
    return "".join(secrets.choice(LETTERS) for _ in range(LENGTH))


def code_of(typed: str) -> str:
    """A code as it is stored, from what was typed: "bcd fg" and "BCD-FG" are the same. One that is none is left empty."""
    letters = "".join(str(typed)[:100].upper().replace("-", " ").split())
    return letters if len(letters) == LENGTH and set(letters) <= set(LETTERS) else ""


def hashed(secret: str) -> str:
    """What is stored of a token or a key: who reads the database cannot act for anybody."""
    return hashlib.sha256(str(secret)[:1000].encode("utf-8", "surrogatepass")).hexdigest()

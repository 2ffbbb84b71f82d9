"""Grammar of legal sentences in which a verb agrees with a distant noun."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

import torch

from core.model.text import PAD
from core.tasks.task import IGNORE, Drawn, Words, register_task

# A noun whose plural is not its singular and s is written with both.
PEOPLE = " ".join(
    [
        (
            "court judge defendant plaintiff tenant lawyer witness/witnesses bank landlord clerk"
            " attorney expert guard officer driver doctor"
        ),
        (
            "nurse teacher student neighbour manager worker buyer seller broker heir debtor"
            " creditor insurer editor builder farmer customer"
        ),
        "prisoner child/children man/men woman/women",
    ]
)
THINGS = (
    "contract lease letter claim report motion deed bill ticket book map key car house farm ring"
    " file permit loan photograph"
)
ROLES = "owner author holder finder maker keeper"
NOUNS = {
    kind: [
        (singular, several or f"{singular}s")
        for singular, _, several in (word.partition("/") for word in words.split())
    ]
    for kind, words in {"people": PEOPLE, "things": THINGS, "roles": ROLES}.items()
}
BE = ("was", "were")
ADJECTIVES = (
    "liable bound late absent present insolvent right wrong guilty innocent ready angry honest"
    " careful tired happy sad rich poor ill afraid silent busy asleep"
).split()
RULED = "held found ruled said argued thought believed knew".split()
TO_THINGS = "signed read sent kept filed sold lost hidden copied stolen".split()
TO_PEOPLE = "suing paying calling warning helping watching following blaming visiting".split()
NEAR = "with without behind near beside under".split()
HOLDING = "holding reading selling carrying hiding buying showing signing".split()
DETERMINERS = "the the the the the my our their".split()  # one of these, each as likely
OF_KIND = {kind: [form for pair in pairs for form in pair] for kind, pairs in NOUNS.items()}
FORMS = [form for forms in OF_KIND.values() for form in forms]
MARKS = [",", "."]
LINKS = "that who whom had of by".split()
NUMBER = {
    word: number for pairs in NOUNS.values() for pair in pairs for number, word in enumerate(pair)
}
# Every word once, by its kind, roughly in the order in which a sentence takes them.
KINDS: dict[str, Sequence[str]] = {
    "Determiners": list(dict.fromkeys(DETERMINERS)),
    "People": OF_KIND["people"],
    "Verbs of saying and thinking": RULED,
    "Function words": LINKS,
    "Roles": OF_KIND["roles"],
    "Past participles": TO_THINGS,
    "Present participles": [*TO_PEOPLE, *HOLDING],
    "Prepositions": NEAR,
    "Things": OF_KIND["things"],
    "Forms of be": BE,
    "Adjectives": ADJECTIVES,
    "Punctuation": MARKS,
}
VOCABULARY = (PAD, *(word for words in KINDS.values() for word in words))
# words of a sentence; clauses in one; random numbers it may use
LONGEST = 28
CLAUSES = 3
NUMBERS = 64


class Anatomy(NamedTuple):
    """Positions of agreeing words in a sentence, from 0."""

    subject: int
    verb: int  # of the sentence itself, not of a clause in it
    clause: bool  # whether a clause with "who" or "whom" stands between them
    distractors: int  # nouns between them of the other number


def verb_at(words: Sequence[str]) -> int:
    """Return the index of the main verb: third from the end, with full stop, no padding."""
    return len(words) - 3


def find_anatomy(words: Sequence[str]) -> Anatomy:
    """Find subject, verb (indices from 0), clause and distractors of a legal sentence with stop."""
    verb = verb_at(words)
    subject = 5 if words[2] in RULED and words[3] == "that" else 1
    number = BE.index(words[verb])
    between = words[subject + 1 : verb]
    return Anatomy(
        subject,
        verb,
        "who" in between or "whom" in between,
        sum(NUMBER.get(w, number) != number for w in between),
    )


def is_kept_back(words: Sequence[str]) -> bool:
    """Return whether the shipped model never trains on a full sentence's words before the verb.

    A fifth of all beginnings, by a hash of these words.
    """
    beginning = " ".join(words[: verb_at(words)]).encode()
    return int.from_bytes(hashlib.blake2b(beginning, digest_size=8).digest(), "big") % 5 == 0


Option = TypeVar("Option")


class Writer:
    """Writer of one sentence; every choice takes the next of the random numbers given.

    A clause may contain a noun that carries a clause itself (nested), and a noun may carry two in a
    row (chained). Which noun a verb belongs to is always clear: "who was" follows its noun at once,
    "whom the judges …" opens a clause that its verb closes, and the verb that is left belongs to
    the sentence.
    """

    def __init__(self, numbers: Iterable[int]):
        self.numbers = iter(numbers)
        self.left = 0

    def pick(self, options: Sequence[Option]) -> Option:
        """Return one of the options, by the next random number."""
        return options[next(self.numbers) % len(options)]

    def sentence(self) -> list[str]:
        """Write a sentence with its full stop, as words; those kept back from training, too.

        Two commas in a row become one.
        """
        self.left = self.pick(range(CLAUSES + 1))
        number = self.pick((0, 1))
        opening = [
            self.pick(DETERMINERS),
            self.noun("people", self.pick((0, 1))),
            self.pick(RULED),
            "that",
        ]
        subject = self.phrase("people", number, every=True)
        line = [*self.pick((opening, [])), *subject, self.be(number), self.pick(ADJECTIVES), "."]
        return [word for word, after in zip(line, [*line[1:], ""]) if (word, after) != (",", ",")]

    def noun(self, kind: str, number: int) -> str:
        """Pick a noun of this kind, in singular (0) or plural (1), by the next random number."""
        return self.pick(NOUNS[kind])[number]

    def be(self, number: int) -> str:
        """Return "was" for singular (0) or "were" for plural (1)."""
        return BE[number]

    def phrase(self, kind: str, number: int | None = None, every: bool = False) -> list[str]:
        """Write a noun phrase with its clauses, as words; `number` is drawn if None.

        Args:
            kind: Kind of noun: people or things.
            number: 0 for singular, 1 for plural, None for either.
            every: Whether all remaining clauses must be written here or below.
        """
        number = self.pick((0, 1)) if number is None else number
        noun_phrase = [self.pick(DETERMINERS), self.noun(kind, number)]
        first = True
        while self.left and (every or (first and self.pick((True, False)))):
            self.left -= 1
            noun_phrase += self.pick(CLAUSE[kind][first])(self, number)
            first = False
        return noun_phrase

    def predicate(self, number: int) -> list[str]:
        """Return a predicate clause that agrees in number: ", who was liable ,"."""
        return [",", "who", self.be(number), self.pick(ADJECTIVES), ","]

    def subject_relative(self, number: int) -> list[str]:
        """Return a subject relative clause of any number: ", who had signed the contracts ,"."""
        return [",", "who", "had", self.pick(TO_THINGS), *self.phrase("things"), ","]

    def object_relative(self, number: int) -> list[str]:
        """Return an object relative clause of a new number: "whom the judges were calling"."""
        number = self.pick((0, 1))
        return ["whom", *self.phrase("people", number), self.be(number), self.pick(TO_PEOPLE)]

    def prepositional(self, number: int) -> list[str]:
        """Return a prepositional phrase, whatever `number` is: "with the reports"."""
        return [self.pick(NEAR), *self.phrase("things")]

    def appositive(self, number: int) -> list[str]:
        """Return an appositive whose role has this number: ", the owner of the letters ,"."""
        return [",", "the", self.noun("roles", number), "of", *self.phrase("things"), ","]

    def participle(self, number: int) -> list[str]:
        """Return a present participle and its object, for any number: "holding the letters"."""
        return [self.pick(HOLDING), *self.phrase("things")]

    def passive(self, number: int) -> list[str]:
        """Return a past participle with its agent, whatever `number` is: "signed by the judges"."""
        return [self.pick(TO_THINGS), "by", *self.phrase("people")]


_LATER = [
    Writer.subject_relative,
    Writer.object_relative,
    Writer.prepositional,
    Writer.appositive,
    Writer.participle,
]
CLAUSE = {
    "people": {True: [*_LATER, Writer.predicate], False: _LATER},
    "things": {True: [Writer.passive], False: []},
}


@register_task(
    label="Legal sentences",
    skill="Grammar",
    help=(
        "predict the next token. Scored on was/were agreement across intervening clauses. "
        "Requires attention. Test sentences do not occur "
        "in training."
    ),
    mask="causal",
    length=LONGEST,
    lengths=range(LONGEST, LONGEST + 1),
    vocabulary=VOCABULARY,
    marginal=lambda vocabulary: 1 / len(BE),
    needs=(
        "attention: the subject may be twenty tokens back, with other nouns in between; the causal"
        " mask gives the order"
    ),
    without={"attention": False},
    remains=(
        "without attention a model still sees the current token, which is enough where the subject"
        " is right before its verb."
    ),
    why=(
        "only was against were is scored, and the subject determines which (Linzen, Dupoux and"
        " Goldberg, 2016)"
    ),
    held_out=0.2,
    until=BE,
    rivals=(BE,),
    agreement=True,
    ends=".",
    texts=(
        (
            "Three distractors",
            (
                "the defendant , who had filed the contracts , showing the keys hidden by the"
                " clerks was liable ."
            ),
        ),
        (
            "Intervening clause",
            "the court held that the defendant , who had signed the contracts , was liable .",
        ),
        ("Two intervening nouns", "the judges with the letter sent by the clerk were late ."),
        ("Object relative clause", "the tenants whom the bank was suing were bound ."),
        ("Adjacent", "the lawyer was right ."),
        ("Unfinished sentence", "the witness said that the owners of"),
        ("Unknown words", "The defendant , who had filed a motion to dismiss , was liable ."),
    ),
    test=256,
    example_seed=37,
    revision=2,
    model={"d_model": 64, "n_heads": 4, "n_layers": 2, "position": "rope"},
    training={"steps": 2000, "batch": 32, "learning_rate": 6e-3, "warmup": 20, "decay": "linear"},
)
def sentences(generator: torch.Generator, batch: int, length: int, vocabulary: Words) -> Drawn:
    """Draw legal sentences, padded to (batch, length); targets: next words, IGNORE for padding.

    Held-out sentences are drawn too.

    Example (seed 37): their landlords thought that the bank whom their buyers were paying was
    liable . → landlords thought that the bank whom their buyers were paying was liable . ·
    """
    numbers = torch.randint(2**31, (batch, NUMBERS), generator=generator).tolist()
    index = {word: index for index, word in enumerate(vocabulary)}
    rows = torch.full((batch, length + 1), index[PAD])
    for row, line in enumerate(numbers):
        ids = [index[word] for word in Writer(line).sentence()]
        rows[row, : len(ids)] = torch.tensor(ids)
    return rows[:, :-1], rows[:, 1:].masked_fill(rows[:, 1:] == index[PAD], IGNORE)

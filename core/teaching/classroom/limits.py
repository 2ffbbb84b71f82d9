"""How much of anything a class may have, and how it is said when that is not enough."""

from core.settings.setting import ConfigError

HOURS = 24  # that a class lives: a lesson and what is left of its day; nothing about students is kept for longer
ALIVE = 200  # classes at once: a school's, and of the codes that could be guessed hardly one in 5,000 is some class's
EMPTY = 600.0  # seconds for which a class that nobody has joined, and a seat that has not voted, keep their places where all are taken
QUIET = 3600.0  # seconds for which a class in which nobody joins, asks or votes keeps its place where all are taken
SEATS = 500  # of a class: a large lecture
POLLS = 100  # of a class: a question a minute for longer than a lesson
MINUTE = 60.0  # seconds over which joins and tries are counted
JOINS = (
    300  # of a class within a minute: a lecture that joins at once, but not a program that fills the seats before it
)
TRIES = 20  # votes that a seat sends within a minute: any nervous hand, but no program that keeps the database busy
NICKNAME = 40  # characters: a name on a projector
BECAUSE = 300  # characters: two sentences, read at a glance
ANSWER = 200  # characters: the longest label of an answer
QUESTION = 100  # characters: a name by which the page knows what it asked, no text
SURE = 3  # the surest; 0 is a guess
ROUNDS = 2  # before the discussion, and after it
SECONDS = 3600  # the longest that a question has: an hour
PICKED = 3  # reasons on a projector at once


class ClassError(ConfigError):
    """What a class does not allow, or does not have; the message says which and what is allowed, to be shown as it is.

    `field` says of what: "code", "token", "key" (who asks is not known), "nickname", "question", "round", "seconds",
    "answer", "sure", "because", "pick" (what was given), "class" (it is full), "tries", "vote" (one is in), "late", "phase".
    """

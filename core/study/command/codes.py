"""With what a command ends: see core.study.__main__."""

COMPLETE, INCOMPLETE, MISTAKE, NO_STORE = range(4)

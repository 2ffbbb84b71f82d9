"""How fast something may come over one connection.

Imported by the server before there is a runtime: nothing that registers a component may be imported here.
"""


class Pace:
    """So much at once, and from then on so much a second (a token bucket)."""

    def __init__(self, at_once: float, a_second: float, now: float):
        self.at_once, self.a_second = at_once, a_second
        self.left, self.at = at_once, now

    def take(self, many: float, now: float) -> float:
        """Count what has come -> in how many seconds it might have; not above 0: it may come now. now: in seconds, of one clock."""
        self.left = min(self.at_once, self.left + (now - self.at) * self.a_second) - many
        self.at = now
        return -self.left / self.a_second

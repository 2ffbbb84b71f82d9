"""Take results away: tables as CSV, pictures as SVG or PNG, scripts that print the numbers."""

from ui.kit.takeaway.matrices import MatrixTable
from ui.kit.takeaway.takeaway import TABLES, begin, button, note, offer, said, says

__all__ = ["MatrixTable", "TABLES", "begin", "button", "note", "offer", "said", "says"]

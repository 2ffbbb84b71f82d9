"""Take results away: tables as CSV, pictures as SVG or PNG, scripts that print the numbers."""

from ui.kit.takeaway.takeaway import FLAVOURS, TABLES, begin, button, matrix_table, note, offer, said, says

__all__ = ["FLAVOURS", "TABLES", "begin", "button", "matrix_table", "note", "offer", "said", "says"]

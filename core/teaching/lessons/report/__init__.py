"""The lab report: one HTML file that holds what somebody predicted, what came out, and all that is needed to do it again.

What is in it, and how it is read again: report.py. How it looks: document.py, part.py, style.py.
"""

# isort: off
from core.teaching.lessons.report.report import Report, ReportError, read
from core.teaching.lessons.report.document import write

__all__ = ["Report", "ReportError", "read", "write"]

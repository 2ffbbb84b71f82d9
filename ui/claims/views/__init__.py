"""The views of the page "Claims": each is one decorated function in a file of its own, called with a ClaimsContext."""

# In the order of the tabs. (noqa: importing a view enters it in the menu; fmt: skip keeps them in one line)
from ui.claims.views import gallery, evidence  # noqa: F401, I001  # fmt: skip

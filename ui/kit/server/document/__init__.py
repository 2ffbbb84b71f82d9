"""The document in which every page is drawn, and what stands in it from the first moment: frame.css, browser.js, the icon."""

from ui.kit.server.document.document import ICON, icon, pages, routes

__all__ = ["ICON", "icon", "pages", "routes"]

"""The controls of the sidebar, all of them one part of the page."""

"""Pictures as components, each next to its JavaScript."""

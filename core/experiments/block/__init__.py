"""Questions about one pass."""

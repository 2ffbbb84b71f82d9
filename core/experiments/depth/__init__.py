"""Questions about many passes."""

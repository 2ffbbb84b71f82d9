"""Where studies are kept, and how to get at it."""

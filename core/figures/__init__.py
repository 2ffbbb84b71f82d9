"""Charts, the drawn block, colours."""

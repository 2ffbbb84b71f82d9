"""What the command python -m core.study does."""

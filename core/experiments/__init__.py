"""One question per file: what a page computes before it is drawn."""

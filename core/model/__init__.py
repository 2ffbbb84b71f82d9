"""The transformer and what acts on it: parts, trace, knock-outs, kept keys and values, variants."""

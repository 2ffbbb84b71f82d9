"""Training in worker processes, of this machine or of many."""

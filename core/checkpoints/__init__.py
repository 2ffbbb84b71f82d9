"""Trained models as files: safetensors and JSON. Nothing in a file is ever executed.

files.py finds them: in models/, in an upload, on the Hub; they are a model of
our own (own.py) or GPT-2 in its published layout (gpt2.py), by the content of its config.json.
"""

from core.checkpoints.opened import CheckpointError, Opened

__all__ = ["CheckpointError", "Opened"]

"""Trained models as files: safetensors and JSON. Nothing in a file is ever executed.

files.py finds models in models/, in an upload and on the Hub. The content of config.json decides
whether it is a model of this app (native.py) or GPT-2 in its published layout (gpt2.py).
"""

from core.checkpoints.opened import CheckpointError, Opened

__all__ = ["CheckpointError", "Opened"]

"""For all tests: one torch thread, and the same hypothesis examples in every run."""

import torch
from hypothesis import settings

torch.set_num_threads(1)  # the tensors are tiny: a second thread costs more than it brings

# Derandomized: a test that fails, fails in every run. No deadline: no test here is about time.
settings.register_profile("lab", deadline=None, derandomize=True, max_examples=200)
settings.load_profile("lab")

"""A disk of a test's own: one that can be full, or become one that is only read."""

import shutil
import subprocess
from contextlib import contextmanager

import pytest


@contextmanager
def disk(tmp_path, size: str, otherwise: str):
    """-> (its folder, what mounts it anew with other options); only root may have one, and not everywhere: then the test is skipped.

    otherwise: what is tested instead, for the reason of the skip.
    """
    folder = tmp_path / "disk"
    folder.mkdir()

    def mount(options: str) -> bool:
        call = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        return subprocess.run(call, capture_output=True).returncode == 0

    if not (shutil.which("mount") and mount(f"size={size}")):
        pytest.skip(f"no tmpfs can be mounted here; {otherwise} is tested instead")
    try:
        yield folder, lambda options: mount(f"remount,{options}")
    finally:
        subprocess.run(["umount", str(folder)], check=True)

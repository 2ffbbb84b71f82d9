"""Device and precision of a pass, and timing on a device."""

import functools
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

import torch

from core.settings.menu import Menu
from core.settings.setting import ConfigError, Settings, setting

Result = TypeVar("Result")

device: Menu[str] = Menu("Device")
device.add("auto", label="Fastest available", help="CUDA if available, else MPS, else the CPU.")
device.add("cuda", label="CUDA", help="an NVIDIA GPU (or an AMD GPU through ROCm).")
device.add("mps", label="MPS", help="the GPU of an Apple computer.")
device.add("cpu", label="CPU", help="the processor.")

dtype: Menu[torch.dtype] = Menu("Precision")
dtype.add(
    "float32",
    torch.float32,
    label="float32",
    help="32 bits, about 7 decimal digits; the usual choice.",
)
dtype.add(
    "bfloat16",
    torch.bfloat16,
    label="bfloat16",
    help="16 bits, the range of float32 with about 2 to 3 decimal digits.",
)
dtype.add(
    "float16",
    torch.float16,
    label="float16",
    help="16 bits, about 3 decimal digits, up to 65,504; GPU only.",
)


def in_float64(x: torch.Tensor) -> torch.Tensor:
    """Return a tensor in float64, on the CPU where the device has none (Apple GPUs)."""
    return x.double() if x.device.type in ("cpu", "cuda") else x.cpu().double()


@functools.cache
def available_devices() -> tuple[str, ...]:
    """Return the devices of this machine, fastest first: cuda, mps, cpu."""
    devices = ["cuda"] * torch.cuda.is_available() + ["mps"] * torch.backends.mps.is_available()
    return (*devices, "cpu")


@dataclass(frozen=True)
class Machine(Settings):
    """Device and precision of a pass.

    Raises ConfigError for what this machine does not have; see anywhere.
    """

    device: str = setting(
        "auto", "Device", "Device for all computations.", group="Machine", menu=device
    )
    dtype: str = setting(
        "float32", "Precision", "Floating-point format.", group="Machine", menu=dtype
    )

    @classmethod
    def anywhere(cls, device: str = "auto", dtype: str = "float32") -> "Machine":
        """Return a machine that need not exist here; ConfigError for values that are in no menu."""
        machine = object.__new__(cls)
        machine.__dict__.update(device=device, dtype=dtype)
        machine._check_each()
        return machine

    def _check_together(self) -> None:
        """Raise ConfigError if device or dtype is not available here, when it is built."""
        self.check_here()

    def check_here(self) -> None:
        """Raise ConfigError for a device or precision that this machine does not have."""
        if self.device != "auto" and self.device not in available_devices():
            raise ConfigError(
                "device",
                f"device is {self.device}, which is not available here; available:"
                f" {', '.join(available_devices())}.",
            )
        if self.dtype == "float16" and self.torch_device == "cpu":
            raise ConfigError(
                "dtype", "dtype is float16, which needs a GPU; on a CPU choose float32 or bfloat16."
            )

    @property
    def torch_device(self) -> str:
        """Device that runs: cuda, mps or cpu."""
        return available_devices()[0] if self.device == "auto" else device[self.device]

    @property
    def precision(self) -> torch.dtype:
        """Precision as a torch.dtype."""
        return dtype[self.dtype]

    @property
    def name(self) -> str:
        """Device in use, in words, such as "NVIDIA H200" or "CPU"."""
        return {"cpu": "CPU", "mps": "Apple GPU"}.get(self.torch_device) or torch.get_device_module(
            self.torch_device
        ).get_device_name()

    def autocast(self) -> torch.autocast:
        """Return a context that computes products in this precision (disabled for float32)."""
        return torch.autocast(self.torch_device, self.precision, enabled=self.dtype != "float32")

    def choices(self, name: str) -> list[str]:
        """Return the keys of the menu "device" (with "auto") or "dtype" that this machine has."""
        if name == "device":
            return ["auto", *available_devices()]
        return [key for key in dtype if key != "float16" or self.torch_device != "cpu"]


@dataclass(frozen=True)
class Timing:
    """Median of some timed runs, and when the last one ended."""

    milliseconds: float
    runs: int
    ended: datetime  # of the last run

    def __str__(self) -> str:
        """Return "0.31 ms (median of 3)", or for a single run also when it was timed."""
        how = f"median of {self.runs}" if self.runs > 1 else f"timed once, {self.ended:%H:%M} UTC"
        digits = ",.0f" if self.milliseconds >= 100 else ".3g"
        return f"{self.milliseconds:{digits}} ms ({how})"


def time_median(call: Callable[[], object], torch_device: str, runs: int) -> Timing:
    """Run a call so many times, without warm-up; return the median milliseconds as a Timing."""
    took = statistics.median(time_call(call, torch_device)[1] for _ in range(runs))
    return Timing(took, runs, datetime.now(UTC))


def time_call(call: Callable[[], Result], torch_device: str) -> tuple[Result, float]:
    """Run a call and return its result and milliseconds, by the GPU's own events or a clock."""
    if torch_device == "cpu":
        start = time.perf_counter()
        result = call()
        return result, 1e3 * (time.perf_counter() - start)
    event = torch.get_device_module(torch_device).Event
    before = event(enable_timing=True)
    after = event(enable_timing=True)
    before.record()
    result = call()
    after.record()
    after.synchronize()
    return result, before.elapsed_time(after)


def median_ms(call: Callable[[], object], torch_device: str, repeats: int = 15) -> float:
    """Return the median milliseconds of a call, after three runs that do not count."""
    for _ in range(3):
        call()
    return time_median(call, torch_device, repeats).milliseconds

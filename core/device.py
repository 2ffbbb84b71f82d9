"""Where a pass runs and with what precision, and how long it took there."""

import functools
import statistics
import time
from dataclasses import dataclass

import torch

from core.dial import ConfigError, dial
from core.menu import Menu

device = Menu("Device")
dtype = Menu("Precision")


@device
def auto():
    """Fastest present: CUDA if there is one, else MPS, else the CPU."""
    return next(name for name in ("cuda", "mps", "cpu") if name in present())


@device
def cuda():
    """CUDA: an NVIDIA GPU (or AMD's through ROCm)."""
    return "cuda"


@device
def mps():
    """MPS: the GPU of an Apple computer."""
    return "mps"


@device
def cpu():
    """CPU: the processor; every machine has one."""
    return "cpu"


@dtype
def float32():
    """float32: 32 bits, about 7 decimal digits; what most people mean by a number here."""
    return torch.float32


@dtype
def bfloat16():
    """bfloat16: 16 bits, the range of float32 with about 2 to 3 decimal digits."""
    return torch.bfloat16


@dtype
def float16():
    """float16: 16 bits, about 3 decimal digits and nothing above 65,504; on a GPU only."""
    return torch.float16


@functools.cache
def present() -> tuple[str, ...]:
    """The devices of this machine, fastest first."""
    found = ["cuda"] * torch.cuda.is_available() + ["mps"] * torch.backends.mps.is_available()
    return (*found, "cpu")


@dataclass(frozen=True)
class Machine:
    """Device and precision of a pass. Raises ConfigError for what this machine does not have; see anywhere."""

    device: str = dial("auto", "Device", "Where the numbers are computed.", group="Machine", menu=device)
    dtype: str = dial("float32", "Precision", "How many bits each number has.", group="Machine", menu=dtype)

    @classmethod
    def anywhere(cls, device: str = "auto", dtype: str = "float32") -> "Machine":
        """One that this process need not have, because another may train on it. Raises ConfigError for what is in no menu."""
        made = object.__new__(cls)
        made.__dict__.update(device=device, dtype=dtype)
        made._check_names()
        return made

    def __post_init__(self):
        self._check_names()
        self.check_here()

    def _check_names(self):
        for name in ("device", "dtype"):
            self.__dataclass_fields__[name].metadata["dial"].check(name, getattr(self, name))

    def check_here(self):
        """Raises ConfigError for what this machine does not have."""
        if self.device != "auto" and self.device not in present():
            raise ConfigError(
                "device", f"device is {self.device}, which this machine does not have; it has {', '.join(present())}."
            )
        if self.dtype == "float16" and self.place == "cpu":
            raise ConfigError("dtype", "dtype is float16, which needs a GPU; on a CPU choose one of float32, bfloat16.")

    @property
    def place(self) -> str:
        """The device that runs: cuda, mps or cpu."""
        return device[self.device]()

    @property
    def precision(self) -> torch.dtype:
        return dtype[self.dtype]()

    @property
    def name(self) -> str:
        """The device in words, e.g. "NVIDIA H200" or "CPU"."""
        return {"cuda": torch.cuda.get_device_name, "mps": lambda: "Apple GPU"}.get(self.place, lambda: "CPU")()

    def autocast(self):
        """A context in which products are taken in this precision, while weights stay float32."""
        return torch.autocast(self.place, self.precision, enabled=self.dtype != "float32")

    def choices(self, name: str) -> list[str]:
        """What of a menu can be chosen on this machine."""
        if name == "device":
            return ["auto", *present()]
        return [key for key in dtype if key != "float16" or self.place != "cpu"]


def timed(call, place: str):
    """-> (what call() returned, milliseconds), by the device's own events on a GPU, by the clock on a CPU."""
    if place == "cpu":
        start = time.perf_counter()
        result = call()
        return result, 1e3 * (time.perf_counter() - start)
    Event = {"cuda": torch.cuda.Event, "mps": torch.mps.Event}[place]
    before, after = Event(enable_timing=True), Event(enable_timing=True)
    before.record()
    result = call()
    after.record()
    after.synchronize()
    return result, before.elapsed_time(after)


def median_ms(call, place: str, repeats: int = 15) -> float:
    """Median time of repeated calls, after three that do not count."""
    for _ in range(3):
        call()
    return statistics.median(timed(call, place)[1] for _ in range(repeats))

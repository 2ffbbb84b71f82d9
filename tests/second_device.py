"""A simulated second device: torch places tensors on it, and the CPU computes.

    import tests.second_device  # in a separate process: now torch and core know the device
    forward(config, tokens, Machine("second"))

An operation that mixes tensors of both devices fails as it does on a GPU. So does reading one of
them as an array and, as on Apple's GPUs, every float64 tensor. So whatever core does on a GPU can
be run without one, and its numbers compared with the CPU's.

It is torch's PrivateUse1, which torch reserves for devices that it does not know. A tensor there
holds the CPU's tensor (`numbers`), and every operation that reaches the device runs on these.

It does not show speed, memory, ranges and rounding of a GPU's own kernels, nor asynchronous
operations. Written for torch 2.13; the names with an underscore may change.
"""

import time
from functools import partial

import torch
from torch.utils.backend_registration import (
    _DummyBackendModule,
    _setup_privateuseone_for_python_backend,
)

from core.settings import device
from core.workers import worker

NAME = "second"
aten = torch.ops.aten
COPIES = {aten._to_copy.default, aten.copy_.default}  # these may have one end there and one here
POINTWISE = {
    aten.masked_fill.Tensor,
    aten.masked_fill_.Tensor,
    aten.fill_.Tensor,
}  # in addition to those that torch marks as such
INDEXED = {
    "index",
    "_unsafe_index",
    "index_put",
    "index_put_",
    "_index_put_impl_",
}  # whose indices may be here


class Second(torch.Tensor):
    """A tensor on the second device; numbers: the tensor on the CPU that it stands for."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, numbers: torch.Tensor):
        if numbers.dtype in (torch.float64, torch.complex128):  # in the words of MPS
            raise TypeError(
                f"Cannot convert a {NAME} Tensor to float64 dtype as the framework doesn't support"
                " float64."
            )
        with torch.inference_mode(False):  # or a view could not be made of it later
            wrapper = torch.Tensor._make_wrapper_subclass(
                cls,
                numbers.size(),
                strides=numbers.stride(),
                storage_offset=numbers.storage_offset(),
                dtype=numbers.dtype,
                device=torch.device(NAME, 0),
            )
        wrapper.numbers = numbers
        return wrapper

    @classmethod
    def __torch_dispatch__(cls, op, types, args=(), kwargs=None):
        return run(op, *args, **(kwargs or {}))

    def tolist(self):
        return self.cpu().tolist()  # which torch refuses to do for a class of one's own

    def numpy(self, **args):
        raise TypeError(
            f"can't convert {NAME} device type tensor to numpy. Use Tensor.cpu() to copy the tensor"
            " first."
        )

    def __array__(self, *args):
        self.numpy()

    def __repr__(self, **args):
        return f"Second({self.numbers})"

    def __format__(self, form: str) -> str:
        return format(self.item(), form) if self.dim() == 0 else super().__format__(form)


def run(op, *args, **kwargs):
    """Run one operation that takes or returns a tensor on the second device."""
    if op is aten._has_compatible_shallow_copy_type.default:
        return False  # a module that moves gets new parameters
    if op.overloadpacket is aten.to:  # comes whole in inference mode
        return op.decompose(*args, **kwargs)
    device = kwargs.get("device")
    to_cpu = device is not None and torch.device(device).type != NAME  # where the result belongs
    refuse_mixed(op, args, kwargs, to_cpu)
    came = op(*_mapped(args, _bare), **{name: _mapped(x, _bare) for name, x in kwargs.items()})
    if op._schema.is_mutable:
        changed = kwargs.get("out", args[0])
        if isinstance(changed, Second) and changed.shape != changed.numbers.shape:
            raise NotImplementedError(f"{op} has changed a shape, which the second device cannot")
        return changed if op._schema.returns else None
    return (
        came if to_cpu else _mapped(came, lambda x: Second(x) if isinstance(x, torch.Tensor) else x)
    )


def _bare(x):
    if isinstance(x, Second):
        return x.numbers
    return torch.device("cpu") if isinstance(x, torch.device) else x


def _mapped(x, call):
    """Return call(x), or a list or tuple of it for each element."""
    return type(x)([_mapped(item, call) for item in x]) if isinstance(x, list | tuple) else call(x)


def refuse_mixed(op, args, kwargs, to_cpu: bool):
    """Raise RuntimeError if an operation mixes devices in a way that a GPU refuses too.

    This holds for tensors and for random generators.
    """
    strangers = []
    on_device = False

    def look(x):
        nonlocal on_device
        on_device = on_device or isinstance(x, Second)
        if isinstance(x, torch.Tensor | torch.Generator) and not isinstance(x, Second):
            strangers.append(x)

    name = op.overloadpacket.__name__
    inputs = [
        x
        for index, x in enumerate(args)
        if not (index == 1 and name in INDEXED and isinstance(args[0], Second))
    ]
    _mapped([*inputs, *kwargs.values()], look)
    if not strangers or op in COPIES or (to_cpu and not on_device):
        return
    one_number = torch.Tag.pointwise in op.tags or op in POINTWISE or name in INDEXED
    for stranger in strangers:
        if isinstance(stranger, torch.Generator):
            raise RuntimeError(
                f"{op}: the generator is of the {stranger.device.type}, and not of {NAME}"
            )
        if stranger.dim() or not one_number:
            raise RuntimeError(
                f"{op}: a tensor of shape {tuple(stranger.shape)} is on the CPU, the others are on"
                f" {NAME}"
            )


class Event:
    """A moment on the device, like torch.cuda.Event; the CPU is never behind."""

    def __init__(self, enable_timing: bool = False):
        self.at = None

    def record(self):
        self.at = time.perf_counter()

    def synchronize(self):
        pass

    def elapsed_time(self, after: "Event") -> float:
        return 1e3 * (after.at - self.at)


class Module(_DummyBackendModule):
    """Counterpart of torch.cuda for the second device."""

    Event = Event

    def get_device_name(self, device=None) -> str:
        return "Second device"

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16, torch.float16]


# What CUDA does under autocast, as far as it is used here:
# https://docs.pytorch.org/docs/stable/amp.html#cuda-ops-that-can-autocast-to-float16
LOWERED = ("linear", "matmul", "mm", "bmm", "addmm", "baddbmm", "einsum")
RAISED = (
    "softmax.int",
    "log_softmax.int",
    "layer_norm",
    "nll_loss",
    "logsumexp",
    "norm.ScalarOpt_dim",
    "sum.dim_IntList",
)


def autocast(op, lowered: bool):
    """Return the operation with autocast's precision: lowered, or float32."""

    def cast(x):
        expected = torch.get_autocast_dtype(NAME) if lowered else torch.float32
        return x.to(expected) if isinstance(x, torch.Tensor) and x.dtype in FLOATS else x

    def call(*args, **kwargs):
        with torch.autocast(NAME, enabled=False):
            return op(
                *_mapped(args, cast), **{name: _mapped(x, cast) for name, x in kwargs.items()}
            )

    return call


FLOATS = (torch.float32, torch.bfloat16, torch.float16)


def _op(name: str):
    packet, _, overload = name.partition(".")
    return getattr(getattr(aten, packet), overload or "default")


def _register() -> list[torch.library.Library]:
    """Register the device with torch. Return the libraries that must stay alive meanwhile."""
    _setup_privateuseone_for_python_backend(NAME, Module())
    every = torch.library.Library("_", "IMPL")
    library = torch.library.Library("aten", "IMPL")
    every.fallback(run, "PrivateUse1")
    every.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
    library.impl(
        "_copy_from",
        lambda x, to, non_blocking=False: run(aten.copy_.default, to, x),
        "PrivateUse1",
    )
    for name in (
        "arange",
        "arange.start",
        "arange.start_step",
    ):  # torch would make an empty one, and have it grow
        library.impl(name, partial(run, _op(name)), "PrivateUse1")
    for names, lowered in ((LOWERED, True), (RAISED, False)):
        for name in names:
            library.impl(name, autocast(_op(name), lowered), "AutocastPrivateUse1")
    return [every, library]


def _enter():
    """Add the device to core's menu of devices."""
    device.device.add("second", NAME, label="Second", help="the CPU in another's clothes.")
    for item in (device, worker):
        item.available_devices = lambda: (NAME, "cpu")
    worker.train_chunk = chunk


def chunk(packed: bytes, seconds: float) -> bytes:
    """Run core.workers.worker.train_chunk in a worker process that knows the device.

    The worker imports this module to find the function, and so registers the device.
    """
    return _chunk(packed, seconds)


_kept = _register()
_chunk = worker.train_chunk
_enter()

"""What a worker computes with, and why nothing is trained on one: rows are the same only where that is the same."""

from collections.abc import Callable
from typing import NamedTuple

from core.settings.device import Machine, device, present
from core.settings.process import device_name, sources, versions


class Origin(NamedTuple):
    """What a process computes with."""

    versions: dict[str, str]
    sources: str
    devices: dict[str, tuple[str, str]]  # each of the menu -> (cuda, mps or cpu; in words), where there is one


def origin() -> Origin:
    """That of this process."""
    machines = {name: Machine(name) for name in device if name in ("auto", *present())}
    devices = {name: (machine.torch_device, device_name(machine)) for name, machine in machines.items()}
    return Origin(versions(), sources(), devices)


def unlike(found: Origin, here: Origin, first: Origin | None, needed: set[str]) -> str:
    """In what a worker differs from this process, or from the first worker, so that it would give other rows; or "".

    The build of torch (2.13.0+cpu) need not be that of this process, which trains nothing.
    """
    ours = here.versions | {"torch": first.versions["torch"] if first else here.versions["torch"]}
    part: Callable[[str], str] = (lambda text: text) if first else (lambda text: text.partition("+")[0])
    differences = [f"{name} {found.versions[name]} and not {ours[name]}" for name in ("torch", "numpy", "python")
            if part(found.versions[name]) != part(ours[name])]  # fmt: skip
    if found.sources != here.sources:
        differences.append(f"other files in core (commit {found.versions['code']}, here {here.versions['code']})")
    differences += [f"no {name}" for name in sorted(needed - found.devices.keys())]
    for name in sorted(needed & found.devices.keys()):
        if first and name in first.devices and found.devices[name] != first.devices[name]:
            differences.append(f"{found.devices[name][1]} and not {first.devices[name][1]} as the others")
    return f"it has {', '.join(differences)}" if differences else ""


def unknown(error: BaseException) -> str:
    """Why a worker has not said what it computes with."""
    if isinstance(error, ImportError):
        return f"it cannot import this project ({error}): start it in the repository's folder with PYTHONPATH=."
    return f"it cannot say what it computes with ({type(error).__name__}: {error})"

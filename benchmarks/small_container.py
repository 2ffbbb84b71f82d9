"""Benchmark of memory: the app in a container as small as Streamlit Community Cloud's.

    python -m benchmarks.small_container [--megabytes 690] [--visitors 1]

Opens all nine pages one after another, then trains an experiment of the Training page to its end.
Needs Linux with a memory cgroup that this user may write (version 1 or 2), and Chromium, which runs
outside the container.
"""

import argparse
import contextlib
import os
import signal
from pathlib import Path

from benchmarks.serving import PATHS, browser, server, settle

GROUPS = Path("/sys/fs/cgroup")


@contextlib.contextmanager
def memory_group(megabytes: int):
    """Make a cgroup with a memory limit in MB. Yield its folder; kill its processes at the end."""
    parent = GROUPS / "memory" if (GROUPS / "memory").is_dir() else GROUPS
    group = parent / f"ablation-lab-{os.getpid()}"
    group.mkdir()
    try:
        name = "memory.max" if parent == GROUPS else "memory.limit_in_bytes"
        (group / name).write_text(str(megabytes << 20))
        swap = group / ("memory.swap.max" if parent == GROUPS else "memory.memsw.limit_in_bytes")
        if swap.exists():
            swap.write_text("0" if parent == GROUPS else str(megabytes << 20))
        yield group
    finally:
        for process in (group / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(process), signal.SIGKILL)
        with contextlib.suppress(
            OSError
        ):  # the kernel may need a moment; an empty group does no harm
            group.rmdir()


def can_limit_memory() -> bool:
    """Return whether this user may make a memory cgroup."""
    try:
        with memory_group(1000):
            return True
    except OSError:
        return False


def used_mb(group: Path) -> float:
    """Return the memory in MB that a cgroup's processes hold and that cannot be reclaimed."""
    stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
    return int(stat["anon"] if "anon" in stat else stat["total_rss"]) / 2**20


def count_killed(group: Path) -> int:
    """Return how many processes of a cgroup were killed for want of memory."""
    file = group / "memory.events"
    if not file.exists():
        file = group / "memory.oom_control"
    counts = dict(line.split() for line in file.read_text().splitlines())
    return int(counts["oom_kill"])


def visit(chromium, address: str, group: Path, report=print):
    """Open every page, train an experiment to its end, and report the memory after each."""
    page = chromium.new_context(viewport={"width": 1280, "height": 720}).new_page()
    page.set_default_timeout(300_000)
    for name in PATHS:
        page.goto(f"{address}/{name}")
        settle(page)
        report(f"{name.partition('?')[0] or 'Start':14} {used_mb(group):4.0f} MB")
    page.goto(f"{address}/Training")
    settle(page)
    page.locator("[class*=st-key-card_] button").first.click()
    page.get_by_text("Done:").wait_for(timeout=900_000)
    report(f"{'a training':14} {used_mb(group):4.0f} MB")
    page.context.close()


@contextlib.contextmanager
def small_server(megabytes: int):
    """Run the app in a memory-limited cgroup. Yield its address, process and cgroup folder."""
    with memory_group(megabytes) as group:
        join = lambda: (group / "cgroup.procs").write_text(str(os.getpid()))  # noqa: E731
        with server(preexec_fn=join) as (address, process):
            yield address, process, group


def main():
    """Print the memory after each page and training."""
    args = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    args.add_argument("--megabytes", type=int, default=690)
    args.add_argument("--visitors", type=int, default=1)
    arguments = args.parse_args()
    with small_server(arguments.megabytes) as (address, process, group), browser() as chromium:
        print(f"started        {used_mb(group):4.0f} MB of {arguments.megabytes}", flush=True)
        for _ in range(arguments.visitors):
            visit(chromium, address, group)
        print(
            f"{count_killed(group)} processes killed; the server is"
            f" {'running' if process.poll() is None else 'gone'}"
        )


if __name__ == "__main__":
    main()

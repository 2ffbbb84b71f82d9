"""Studies from the command line: python -m core.study run FILE; plan, status, resume, export and check beside it.

Exit codes: 0 every run has its result (that it diverged is one); 1 some have none, or (check) do not agree; 2 a mistake in the file or the command;
3 the store cannot be used, or the cluster is gone; 128 + the signal's number after Ctrl-C or a request to end.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial

from core.study.command.codes import MISTAKE, NO_STORE
from core.study.command.commands import check, export_, plan, resume, run, status
from core.study.database.connection import DEFAULT, VARIABLE, Full, StoreError
from core.study.plan import StudyError
from core.workers.cluster import ClusterLost
from core.workers.scheduler import ClusterError


def main(arguments: list[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    try:
        code: int = given.call(given)
        return code
    except StudyError as error:
        print(*error.problems, sep="\n", file=sys.stderr)
        return MISTAKE
    except StoreError as error:
        more = " What was stored is safe: make room, and give the same command again." * isinstance(error, Full)
        print(f"{error}{more}", file=sys.stderr)
        return NO_STORE
    except ClusterError as error:
        print(error, file=sys.stderr)
        return NO_STORE if isinstance(error, ClusterLost) else MISTAKE
    except OSError as error:  # of a file that was named in the command
        print(f"{error.filename or 'A file'}: {error.strerror or error}.", file=sys.stderr)
        return MISTAKE


def parser() -> argparse.ArgumentParser:
    arguments = argparse.ArgumentParser(
        "python -m core.study", description="Train a study, unattended, and keep its numbers."
    )
    commands = arguments.add_subparsers(required=True, metavar="COMMAND")
    command = partial(_add, commands)
    command(plan, "say what a study would train, and how long that takes, without training", "+", True)
    command(
        run,
        "train what is missing of a study; after Ctrl-C what is stored stays, and the runs in hand (at most two per worker) start again",
        "+",
        True,
    )
    command(resume, "go on with a study, from its file or from the store alone", "+", True)
    command(status, "say how far studies are", "*")
    added = command(
        export_,
        "write the tables runs, rows and summary, and the study's file; of several studies each into a folder of its own",
        "+",
    )
    added.add_argument("--csv", metavar="DIR", help="as CSV into this folder")
    added.add_argument("--parquet", metavar="DIR", help="as Parquet into this folder")
    added.add_argument("--summary", metavar="FILE", help="the summary alone, as CSV (of one study)")
    added.add_argument("--picture", metavar="FILE", help="what each variant costs on each task, as SVG (of one study)")
    added.add_argument("--curves", metavar="FILE", help="every row of every run, as NumPy's .npz (of one study)")
    added.add_argument(
        "--besides",
        nargs="*",
        default=[],
        metavar="FILE",
        help="curves of other studies, whose runs are left out of --curves",
    )
    added = command(check, "say whether a study agrees with a summary that was exported before", 1)
    added.add_argument("--with", dest="before", metavar="FILE", required=True, help="the summary, as CSV")
    return arguments


def _add(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    call: Callable[[argparse.Namespace], int],
    help: str,
    several: str | int,
    workers: bool = False,
) -> argparse.ArgumentParser:
    """One more command, called as its function is. several: how many studies it is given; workers: whether it trains."""
    added = commands.add_parser(call.__name__.rstrip("_"), help=help, description=help)
    added.set_defaults(call=call)
    what = "the file of a study" + ("" if call in (run, plan) else ", or its name in the store")
    added.add_argument("studies", nargs=several, metavar="STUDY", help=what)
    where = f"address of the store, or the path of a SQLite file (else {VARIABLE}, else {DEFAULT})"
    added.add_argument("--database", metavar="URL", help=where)
    if workers:
        words = (
            "processes that train (else ABLATION_WORKERS, else one per core up to two); on a cluster "
            "(DASK_SCHEDULER_ADDRESS) how many of its threads at most (else all)"
        )
        added.add_argument("--workers", type=_count, metavar="N", help=words)
    return added


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= 1024):
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number from 1 to 1024")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())

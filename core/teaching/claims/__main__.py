"""Measure claims and write results/claims.csv: `make claims`, which trains what it needs first, or

    python -m core.teaching.claims [--only warm_up …] [--table results/claims.csv]

Claims that are not named stay as they are in the table.
"""

import argparse
from pathlib import Path

import torch

from core.teaching.claims import claim, judged
from core.teaching.claims.rule import FILE, Evidence, describe, read_values, write_values


def main() -> None:
    """Measure the claims that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(claim), default=list(claim), metavar="CLAIM")
    parser.add_argument("--table", type=Path, default=FILE)
    args = parser.parse_args()
    torch.set_num_threads(1)
    # Where all is measured anew, the table need not exist.
    values = {} if set(args.only) == set(claim) else read_values(args.table, complete=False)
    for name in args.only:
        values[name] = dict(claim[name](Evidence()))
        result = judged(values[name], claim[name])
        print(f"{claim.label(name)}: {describe(result, claim[name])}", flush=True)
        measured = {known: values[known] for known in claim if values.get(known)}
        write_values(args.table, measured)


if __name__ == "__main__":
    main()

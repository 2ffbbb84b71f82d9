"""Measures every claim and writes results/claims.csv: `make claims`, which trains what it needs first, or

    python -m core.teaching.claims [--only warm_up …] [--table results/claims.csv]

Those that are not named stay as they are in the table.
"""

import argparse
from pathlib import Path

import torch

from core.teaching.claims import claim, judged
from core.teaching.claims.evidence import Evidence
from core.teaching.claims.results import FILE, read_values, write_values
from core.teaching.claims.wording import told


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--only", nargs="+", choices=list(claim), default=list(claim), metavar="CLAIM")
    given.add_argument("--table", type=Path, default=FILE)
    args = given.parse_args()
    torch.set_num_threads(1)
    # What stays must be read; where all is measured anew, the table need not even be there.
    values = {} if set(args.only) == set(claim) else read_values(args.table, whole=False)
    for name in args.only:
        values[name] = dict(claim[name](Evidence()))
        said = judged(values[name], claim[name])
        print(f"{claim.label(name)}: {told(said, claim[name])}", flush=True)
        write_values(args.table, {each: values[each] for each in claim if values.get(each)})


if __name__ == "__main__":
    main()

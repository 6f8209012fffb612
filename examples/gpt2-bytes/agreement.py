# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares two runs of training: agreement.py ONE SEVERAL, reports (.json) and
parameters (.npz) of mtp-run under these names. Fails if they are far apart."""

import json
import sys

import numpy as np


def main():
    one, several = (json.load(open(f"{name}.json")) for name in sys.argv[1:3])
    losses = np.array(one["loss"]), np.array(several["loss"])
    loss = np.abs(losses[0] - losses[1]).max() / np.abs(losses[0]).max()
    first, second = (np.load(f"{name}.npz") for name in sys.argv[1:3])
    worst = max(np.abs(first[name] - second[name]).max() / np.abs(first[name]).max() for name in first.files)
    print(f"loss: {losses[1][0]:.3f} -> {losses[1][-1]:.3f} in {len(losses[1])} steps")
    print(f"step: {one['step_ms']['median']:.2f} ms on {one['mesh']}, {several['step_ms']['median']:.2f} ms on {several['mesh']}")
    print(f"losses of {several['mesh']} and {one['mesh']} differ by at most {loss:.1e} of the largest,")
    print(f"parameters after the last step by {worst:.1e} of the largest of their tensor")
    if not (loss < 1e-4 and worst < 1e-2 and losses[1][-1] < losses[1][0]):
        sys.exit("the runs do not agree")


if __name__ == "__main__":
    main()

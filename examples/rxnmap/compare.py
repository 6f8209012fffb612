#!/usr/bin/env python3
# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compare the results of one rank and of two, and both with ONNX Runtime's.

    compare.py ONE TWO     where ONE.npz, ONE.json are results of mtp-run
"""

import json
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
TOLERANCE = 1e-4


def error(a, b):
    """max|a-b| / max|b|"""
    return float(np.abs(a - b).max() / np.abs(b).max())


def main():
    one, two = (Path(name) for name in sys.argv[1:3])
    stored = np.load(HERE / "outputs.npz")["attention"]
    results = {name: np.load(f"{path}.npz")["attention"]
               for name, path in (("one rank", one), ("two ranks", two))}
    for name, path in (("one rank", one), ("two ranks", two)):
        step = json.loads(Path(f"{path}.json").read_text())["step_ms"]
        print(f"  {name:<10} {step['median']:8.2f} ms a step (median of {step['runs']})")
    print("  largest difference, relative to the largest value:")
    rows = [("one rank, two ranks", results["two ranks"], results["one rank"])]
    rows += [(f"{name}, ONNX Runtime (stored)", result, stored) for name, result in results.items()]
    worst = 0.0
    for name, a, b in rows:
        worst = max(worst, error(a, b))
        print(f"    {name:<36} {error(a, b):.1e}")
    sums = max(float(np.abs(result.sum(-1) - 1).max()) for result in results.values())
    print(f"  rows of the attention matrix sum to 1 within {sums:.1e}")
    if not (worst <= TOLERANCE and sums <= TOLERANCE):
        sys.exit(f"the results differ by more than {TOLERANCE:.0e}")
    print(f"  all within {TOLERANCE:.0e}")


if __name__ == "__main__":
    main()

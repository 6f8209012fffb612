# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cuts a text into batches for a model over bytes: one .npz a step.

    python prepare.py TEXT FOLDER [--steps 30] [--batch 8] [--length 64]

Every batch has `input_ids` and `labels`, bytes of the text; the label of a position
is the byte after it. The places are drawn with a fixed seed.
"""

import argparse
import pathlib

import numpy as np


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=64)
    options = parser.parse_args()
    text = np.frombuffer(options.text.read_bytes(), np.uint8).astype(np.int64)
    places = np.random.default_rng(0).integers(0, len(text) - options.length, (options.steps, options.batch))
    options.folder.mkdir(parents=True, exist_ok=True)
    for step, starts in enumerate(places):
        ids = np.stack([text[start:start + options.length + 1] for start in starts])
        np.savez(options.folder / f"step-{step:03}.npz", input_ids=ids[:, :-1], labels=ids[:, 1:])
    print(f"{options.steps} batches of {options.batch} x {options.length} bytes of {options.text} ({len(text)} bytes)")


if __name__ == "__main__":
    main()

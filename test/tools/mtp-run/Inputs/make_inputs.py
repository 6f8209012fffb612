# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inputs of gpt2-ts that are wrong in one way each."""

import sys
from pathlib import Path

import numpy as np

folder = Path(sys.argv[1])
ids, mask = np.ones((2, 12), np.int64), np.ones((2, 12), np.int64)
outside = ids.copy()
outside[1, 3] = 101
wrong = {
    "name": dict(input_ids=ids, attention_mask=mask, nosuch=mask),
    "missing": dict(input_ids=ids),
    "rank": dict(input_ids=ids[0], attention_mask=mask),
    "dims": dict(input_ids=np.ones((2, 13), np.int64), attention_mask=mask),
    "type": dict(input_ids=ids.astype(np.float32), attention_mask=mask),
    "range": dict(input_ids=outside, attention_mask=mask),
}
for name, arrays in wrong.items():
    np.savez(folder / f"{name}.npz", **arrays)

#!/usr/bin/env python3
# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models for GPUs with numbers: each is run as --device cuda-emulated, its
kernels by the emulator, and compared.

    emulated_models.py          a few models and meshes
    emulated_models.py --all    every folder of test/models, forward and one training step

Outputs are compared with ONNX Runtime's (outputs.npz), gradients with PyTorch's
in float64 (grads.npz). The error of two tensors is max|a-b| / max|b|; that of
a gradient has a floor of a thousandth of the largest one.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
from check_models import MODELS, Failure, loss_of, run_cases

MESHES = ["tp=1", "tp=2", "dp=2,tp=2"]
F32_BOUND, NARROW_BOUND, GRADIENT_BOUND, FLOOR = 2e-5, 2e-2, 1e-3, 1e-3
# A sample that takes seconds: model, mesh, training. Between them they have
# attention, rotary positions, norms, top-k, convolutions and their gradients.
SAMPLE = [("gpt2-dynamo", "tp=2", False), ("mixtral-dynamo", "tp=1", False), ("vit-ts", "tp=2", False),
          ("llama-ts", "dp=2,tp=2", False), ("t5-ts", "tp=1", False), ("gpt2-ts", "dp=2,tp=2", True)]


def distance(got, expected, floor):
    if got.shape != expected.shape:
        raise Failure(f"shape {list(got.shape)} instead of {list(expected.shape)}")
    if expected.dtype.kind in "iub":
        return 0.0 if (got == expected).all() else float("inf")
    a, b = got.astype(np.float64), expected.astype(np.float64)
    both = np.isnan(a) & np.isnan(b)
    a, b = np.where(both | (a == b), 0, a), np.where(both | (a == b), 0, b)
    scale = max(np.abs(expected[np.isfinite(expected)]).max(initial=0), floor)
    error = np.abs(a - b).max(initial=0)
    return 0.0 if error == 0 else float(error / scale) if np.isfinite(error) and scale > 0 else float("inf")


def worst(path, expected, floor=0.0):
    """The largest error of a tensor of a file, and its name."""
    with np.load(path) as got, np.load(expected) as wanted:
        largest = max((np.abs(wanted[name]).max(initial=0) for name in wanted.files
                       if wanted[name].dtype.kind == "f"), default=0)
        narrow = any(wanted[name].dtype == np.float16 for name in wanted.files)
        missing = set(wanted.files) - set(got.files)
        if missing:
            raise Failure(f"no {', '.join(sorted(missing))}")
        errors = [(distance(got[name], wanted[name], floor * largest), name) for name in wanted.files]
    return *max(errors), narrow


class Case:
    def __init__(self, options, model, mesh, training):
        self.options, self.model, self.mesh, self.training = options, MODELS / model, mesh, training
        self.name = f"{model} {mesh}{' training' if training else ''}"

    def run(self):
        with tempfile.TemporaryDirectory() as name:
            out = Path(name) / "out.npz"
            command = [self.options.build / "bin/mtp-run", self.model / "model.onnx", "--device", "cuda-emulated",
                       "--mesh", self.mesh, "--inputs", self.model / "inputs.npz", "--quiet", "--no-cache"]
            if self.training:
                command += ["--inputs", self.model / "labels.npz", "--train", "--loss", loss_of(self.model),
                            "--dump-grads", out]
            else:
                command += ["--outputs", out]
            command = [str(argument) for argument in command]
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=600)
            if done.returncode:
                raise Failure(f"{' '.join(command)}: exit {done.returncode}: {done.stderr[-1500:]}")
            if self.training:
                error, tensor, _ = worst(out, self.model / "grads.npz", FLOOR)
                bound = GRADIENT_BOUND
            else:
                error, tensor, narrow = worst(out, self.model / "outputs.npz")
                bound = NARROW_BOUND if narrow else F32_BOUND
            if error > bound:
                raise Failure(f"{tensor} differs by {error:.1e}, allowed are {bound:.0e}")
            return f"{error:.1e}"


def cases_of(options):
    if not options.all:
        return [Case(options, *case) for case in SAMPLE]
    folders = [folder for folder in sorted(MODELS.iterdir())
               if (folder / "model.onnx").exists() and (folder / "outputs.npz").exists()]
    return [Case(options, folder.name, mesh, training) for folder in folders for mesh in MESHES
            for training in (False, True) if not training or loss_of(folder)]


if __name__ == "__main__":
    sys.exit(run_cases("emulated", __doc__, cases_of))

#!/usr/bin/env python3
# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models for GPUs with numbers: each is run as --device cuda-emulated, the host
program of --device cuda on the software driver, its kernels by the emulator,
and compared.

    emulated_models.py          a few models and meshes
    emulated_models.py --all    every folder of test/models, forward and one training step,
                                by nccl and by loopback

Outputs are compared with ONNX Runtime's (outputs.npz), gradients with PyTorch's
in float64 (grads.npz). The error of two tensors is max|a-b| / max|b|; that of
a gradient has a floor of a thousandth of the largest one. Steps of training,
the first as it is and the others replayed, have the losses and collectives of
the CPU, and what they record passes mtp-cuda-check.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
from check_models import MODELS, Failure, loss_of, run_cases

MESHES = [("tp=1", "nccl"), ("tp=2", "nccl"), ("tp=2", "loopback"), ("dp=2,tp=2", "nccl"), ("dp=2,tp=2", "loopback")]
F32_BOUND, NARROW_BOUND, GRADIENT_BOUND, FLOOR, LOSS_BOUND = 2e-5, 2e-2, 1e-3, 1e-3, 1e-5
# A sample that takes seconds: model, mesh, communicator, training, precision.
# Between them they have attention, also by matrix instructions, rotary
# positions, norms, top-k, convolutions and their gradients.
SAMPLE = [("gpt2-dynamo", "tp=2", "nccl", False, "f32"), ("mixtral-dynamo", "tp=1", "nccl", False, "f32"),
          ("vit-ts", "tp=2", "loopback", False, "f32"), ("llama-ts", "dp=2,tp=2", "nccl", False, "f32"),
          ("t5-ts", "tp=1", "nccl", False, "f32"), ("gpt2-ts", "dp=2,tp=2", "loopback", True, "f32"),
          ("gpt2-ts", "tp=2", "nccl", False, "bf16"), ("llama-ts", "tp=2", "loopback", False, "f16"),
          ("gpt2-dynamo", "tp=1", "nccl", False, "tf32")]


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
    def __init__(self, options, model, mesh, comm, training, precision="f32"):
        self.options, self.model, self.mesh, self.comm = options, MODELS / model, mesh, comm
        self.training, self.precision = training, precision
        self.name = f"{model} {mesh} {comm}{' training' if training else ''}"
        if precision != "f32":
            self.name += f" {precision}"

    def run_model(self, device, *arguments, **environment):
        command = [self.options.build / "bin/mtp-run", self.model / "model.onnx", "--device", device, "--mesh", self.mesh,
                   "--precision", self.precision, "--inputs", self.model / "inputs.npz", "--quiet", "--cache-dir",
                   self.options.build / "test-cache"]
        if device != "cpu":
            command += ["--comm", self.comm]
        if self.training:
            command += ["--inputs", self.model / "labels.npz", "--train", "--loss", loss_of(self.model)]
        self.call(*command, *arguments, **environment)

    @staticmethod
    def call(*command, **environment):
        command = [str(argument) for argument in command]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=600,
                              env={**os.environ, **environment})
        if done.returncode:
            raise Failure(f"{' '.join(command)}: exit {done.returncode}: {(done.stdout + done.stderr)[-1500:]}")

    def run(self):
        with tempfile.TemporaryDirectory() as name:
            out = Path(name) / "out.npz"
            self.run_model("cuda-emulated", "--dump-grads" if self.training else "--outputs", out)
            if self.training:
                error, tensor, _ = worst(out, self.model / "grads.npz", FLOOR)
                bound = GRADIENT_BOUND
            else:
                error, tensor, narrow = worst(out, self.model / "outputs.npz")
                bound = F32_BOUND if self.precision == "f32" and not narrow else NARROW_BOUND
            if error > bound:
                raise Failure(f"{tensor} differs by {error:.1e}, allowed are {bound:.0e}")
            return f"{error:.1e}"


class Steps(Case):
    """Four steps of training against the CPU's, and their record."""

    def __init__(self, options, model, mesh, comm):
        super().__init__(options, model, mesh, comm, True)
        self.name += " against the CPU"

    def facts(self, folder, device, **environment):
        report = folder / f"{device}.json"
        self.run_model(device, "--steps", 4, "--json", report, **environment)
        facts = json.loads(report.read_text())
        return facts, [(site["op"], site["axis"], site["node"], site["count"], site["bytes"])
                       for site in facts["collectives"]]

    def run(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            gpu, collectives = self.facts(folder, "cuda-emulated", MTP_CUDA_RECORD=str(folder / "record.json"))
            cpu, wanted = self.facts(folder, "cpu")
            if collectives != wanted:
                raise Failure(f"collectives differ from the CPU's: {collectives}")
            error = max(abs(a - b) / abs(b) for a, b in zip(gpu["loss"], cpu["loss"]))
            if error > LOSS_BOUND or len(gpu["loss"]) != 4:
                raise Failure(f"losses are {gpu['loss']} instead of {cpu['loss']}")
            self.call(self.options.build / "bin/mtp-cuda-check", folder / "record.json")
            return f"{error:.1e}"


def cases_of(options):
    steps = [Steps(options, "gpt2-ts", "dp=2,tp=2", comm) for comm in ("nccl", "loopback")]
    if not options.all:
        return [Case(options, *case) for case in SAMPLE] + steps
    folders = [folder for folder in sorted(MODELS.iterdir())
               if (folder / "model.onnx").exists() and (folder / "outputs.npz").exists()]
    return steps + [Case(options, folder.name, mesh, comm, training) for folder in folders for mesh, comm in MESHES
                    for training in (False, True) if not training or loss_of(folder)]


if __name__ == "__main__":
    sys.exit(run_cases("emulated", __doc__, cases_of))

#!/usr/bin/env python3
# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The same model in ONNX Runtime, PyTorch (where installed) and mtp, in one run.

    side_by_side.py                               BERT-base, batch 1, sequence 128
    side_by_side.py --kind gpt2 --vocab 50257     a decoder of that size
    side_by_side.py --mesh tp=1 --mesh tp=2       meshes of mtp

The weights are random and the same everywhere; outputs are compared. Each takes
its turn in every round, so that a machine that slows down slows all of them; the
ratio of two is the median over rounds of the ratio within a round.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "test/models"))
import synthetic


def timed(function, seconds):
    """Median time of a call in milliseconds, over at least 3 calls."""
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        function()
        times.append(1000 * (time.perf_counter() - start))
    return float(np.median(times))


class OnnxRuntime:
    def __init__(self, folder, threads):
        import onnxruntime as ort
        settings = ort.SessionOptions()
        settings.intra_op_num_threads = threads
        self.session = ort.InferenceSession(str(folder / "model.onnx"), settings,
                                            providers=["CPUExecutionProvider"])
        self.feeds = dict(np.load(folder / "inputs.npz"))
        self.output = self.step()

    def step(self):
        return self.session.run(None, self.feeds)[0]

    def measure(self, seconds):
        return timed(self.step, seconds)


class PyTorch:
    """The model written with torch's own functions, eager, the same weights."""

    def __init__(self, folder, threads, shape, weights):
        import torch
        torch.set_num_threads(threads)
        self.torch, self.shape = torch, shape
        # linear() wants [out, in]; transposed once, as torch itself stores it.
        self.weights = {name: torch.from_numpy(array.T.copy() if array.ndim == 2 and ".weight" in name
                                               and name.startswith("layers.") else array)
                        for name, array in weights.items()}
        self.ids = torch.from_numpy(np.load(folder / "inputs.npz")["input_ids"])
        self.output = self.step().numpy()

    def linear(self, x, name):
        return self.torch.nn.functional.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def norm(self, x, name):
        return self.torch.nn.functional.layer_norm(x, (self.shape.hidden,), self.weights[f"{name}.weight"],
                                                   self.weights[f"{name}.bias"], 1e-5)

    def attention(self, x, name):
        s = self.shape
        q, k, v = (self.linear(x, f"{name}.{part}").view(s.batch, s.seq, s.heads, -1).transpose(1, 2)
                   for part in "qkv")
        y = self.torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=s.kind == "gpt2")
        return self.linear(y.transpose(1, 2).reshape(s.batch, s.seq, s.hidden), f"{name}.o")

    def mlp(self, x, name):
        return self.linear(self.torch.nn.functional.gelu(self.linear(x, f"{name}.up")), f"{name}.down")

    def step(self):
        with self.torch.inference_mode():
            x = self.weights["embedding.weight"][self.ids] + self.weights["position.weight"]
            for i in range(self.shape.layers):
                layer = f"layers.{i}"
                if self.shape.kind == "bert":
                    x = self.norm(x + self.attention(x, f"{layer}.attention"), f"{layer}.norm1")
                    x = self.norm(x + self.mlp(x, f"{layer}.mlp"), f"{layer}.norm2")
                else:
                    x = x + self.attention(self.norm(x, f"{layer}.norm1"), f"{layer}.attention")
                    x = x + self.mlp(self.norm(x, f"{layer}.norm2"), f"{layer}.mlp")
            if self.shape.kind == "gpt2":
                x = self.norm(x, "norm") @ self.weights["embedding.weight"].T
            return x

    def measure(self, seconds):
        return timed(self.step, seconds)


class Mtp:
    def __init__(self, folder, threads, mesh, program):
        ranks = int(np.prod([int(axis.split("=")[1]) for axis in mesh.split(",")]))
        self.report, outputs = folder / "mtp.json", folder / "mtp.npz"
        self.command = [program, str(folder / "model.onnx"), "--mesh", mesh, "--quiet", "--inputs",
                        str(folder / "inputs.npz"), "--json", str(self.report),
                        "--threads-per-rank", str(max(1, threads // ranks)), "--cache-dir", str(folder / "cache")]
        subprocess.run([*self.command, "--outputs", str(outputs)], check=True)
        self.output = next(iter(np.load(outputs).values()))

    def measure(self, seconds):
        subprocess.run([*self.command, f"--bench={seconds}"], check=True)
        return json.loads(self.report.read_text())["step_ms"]["median"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    synthetic.add_arguments(parser)
    parser.add_argument("--mesh", action="append", help="repeatable (default tp=1 and tp=2)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2, help="of one measurement")
    parser.add_argument("--mtp-run", default=str(ROOT / "build/bin/mtp-run"))
    options = parser.parse_args()
    shape = synthetic.shape_of(options)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        weights = synthetic.write(folder, shape)
        runners = {"ONNX Runtime": OnnxRuntime(folder, options.threads)}
        try:
            runners["PyTorch"] = PyTorch(folder, options.threads, shape, weights)
        except ImportError:
            print("PyTorch is not installed: left out", file=sys.stderr)
        for mesh in options.mesh or ["tp=1", "tp=2"]:
            runners[f"mtp {mesh}"] = Mtp(folder, options.threads, mesh, options.mtp_run)
        times = {runner: [] for runner in runners}
        for _ in range(options.rounds):
            for runner, program in runners.items():
                times[runner].append(program.measure(options.seconds))

    base = np.array(times["ONNX Runtime"])
    expected = runners["ONNX Runtime"].output
    print(f"{shape.kind}, {shape.layers} layers, hidden {shape.hidden}, batch {shape.batch}, sequence {shape.seq}; "
          f"{options.threads} threads in all; {options.rounds} rounds")
    print(f"{'':<16}{'ms a step':>12}{'of ONNX Runtime':>18}{'difference':>14}")
    for runner, program in runners.items():
        ratio = float(np.median(np.array(times[runner]) / base))
        distance = np.abs(program.output - expected).max() / np.abs(expected).max()
        print(f"{runner:<16}{np.median(times[runner]):12.2f}{ratio:18.3f}{distance:14.1e}")


if __name__ == "__main__":
    main()

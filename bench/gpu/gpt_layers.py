#!/usr/bin/env python3
# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""GPT layers on a GPU, forward and backward in bf16: mtp beside PyTorch.

    gpt_layers.py                                   hidden 4096, sequence 2048, batch 4, one layer
    gpt_layers.py --hidden 1024 --layers 4 --tp 2   a smaller one, on two GPUs

PyTorch runs the same layers eager and by torch.compile; each takes its turn in
every round, and ratios are medians over rounds. The rate of an 8192 x 8192 bf16
product by cuBLASLt in the same run is what all of them are measured by. Exits
with 6 and a message where there is no GPU or no PyTorch with CUDA.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent


def need_gpu():
    try:
        import torch
    except ImportError:
        print("gpt_layers.py: PyTorch is not installed: there is nothing to compare with", file=sys.stderr)
        sys.exit(6)
    if not torch.cuda.is_available():
        print("gpt_layers.py: PyTorch sees no CUDA device; nothing was measured", file=sys.stderr)
        sys.exit(6)
    return torch


def make_layers(torch, args):
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            h = args.hidden
            self.norm1, self.norm2 = torch.nn.LayerNorm(h), torch.nn.LayerNorm(h)
            self.qkv, self.out = torch.nn.Linear(h, 3 * h), torch.nn.Linear(h, h)
            self.up, self.down = torch.nn.Linear(h, 4 * h), torch.nn.Linear(4 * h, h)

        def forward(self, x):
            b, s, h = x.shape
            q, k, v = (t.view(b, s, args.heads, h // args.heads).transpose(1, 2)
                       for t in self.qkv(self.norm1(x)).chunk(3, dim=-1))
            a = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(a.transpose(1, 2).reshape(b, s, h))
            y = torch.nn.functional.gelu(self.up(self.norm2(x)), approximate="tanh")
            return x + self.down(y)

    torch.manual_seed(0)
    return torch.nn.Sequential(*[Block() for _ in range(args.layers)])


def flops_of(args):
    """Of forward and backward: 6 a weight and token, attention causal."""
    tokens = args.batch * args.sequence
    weights = args.layers * 12 * args.hidden ** 2
    attention = args.layers * 6 * tokens * args.sequence * args.hidden
    return 6 * tokens * weights + attention


class Torch:
    def __init__(self, torch, args, compiled):
        self.torch = torch
        self.model = make_layers(torch, args).cuda().to(torch.bfloat16)
        self.step_of = torch.compile(self.model) if compiled else self.model
        self.x = torch.randn(args.batch, args.sequence, args.hidden, device="cuda", dtype=torch.bfloat16)
        for _ in range(3):
            self.step()

    def step(self):
        self.model.zero_grad(set_to_none=True)
        self.step_of(self.x).float().square().mean().backward()

    def measure(self, seconds):
        times, end = [], time.perf_counter() + seconds
        while len(times) < 5 or time.perf_counter() < end:
            self.torch.cuda.synchronize()
            start = time.perf_counter()
            self.step()
            self.torch.cuda.synchronize()
            times.append(1000 * (time.perf_counter() - start))
        return float(np.median(times))


class Mtp:
    """The layers exported to ONNX and trained with SGD on their mean square; the update is part of the step."""

    def __init__(self, torch, args, folder):
        self.folder, self.mesh = folder, f"tp={args.tp}"
        model = make_layers(torch, args).eval()
        x = torch.randn(args.batch, args.sequence, args.hidden)
        torch.onnx.export(model, (x,), str(folder / "layers.onnx"), input_names=["x"], output_names=["y"],
                          dynamo=False, opset_version=17)
        np.savez(folder / "batch.npz", x=x.numpy(), target=np.zeros(x.shape, np.float32))

    def measure(self, seconds):
        command = [str(ROOT / "build/bin/mtp-run"), str(self.folder / "layers.onnx"), "--device", "cuda",
                   "--mesh", self.mesh, "--precision", "bf16", "--train", "--loss", "mse:prediction=y,target=target",
                   "--optimizer", "sgd", "--inputs", str(self.folder / "batch.npz"), f"--bench={seconds}", "--quiet",
                   "--json", str(self.folder / "report.json")]
        subprocess.run(command, check=True)
        return json.loads((self.folder / "report.json").read_text())["step_ms"]["median"]


def product_rate(torch):
    """TFLOP/s of an 8192^3 product in bf16."""
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for _ in range(3):
        a @ a
    begin.record()
    for _ in range(20):
        a @ a
    end.record()
    torch.cuda.synchronize()
    return 2 * 8192 ** 3 * 20 / (begin.elapsed_time(end) * 1e-3) / 1e12


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name, value in (("hidden", 4096), ("heads", 32), ("sequence", 2048), ("batch", 4), ("layers", 1), ("tp", 1),
                        ("rounds", 5)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--seconds", type=float, default=3, help="of each in each round")
    args = parser.parse_args()
    torch = need_gpu()
    print(f"{torch.cuda.get_device_name(0)}, PyTorch {torch.__version__}, {args.layers} layers of {args.hidden}, "
          f"batch {args.batch}, sequence {args.sequence}, bf16, forward and backward")
    peak = product_rate(torch)
    print(f"8192^3 product: {peak:.1f} TFLOP/s")
    with tempfile.TemporaryDirectory() as folder:
        runners = {"mtp": Mtp(torch, args, Path(folder)), "torch eager": Torch(torch, args, False),
                   "torch compile": Torch(torch, args, True)}
        rounds = [{name: runner.measure(args.seconds) for name, runner in runners.items()}
                  for _ in range(args.rounds)]
    print(f"{'':14} {'ms a step':>10} {'of the product rate':>20} {'mtp is faster by':>17}")
    for name in runners:
        step = float(np.median([r[name] for r in rounds]))
        rate = flops_of(args) / (step * 1e-3) / 1e12
        ratio = float(np.median([r[name] / r["mtp"] for r in rounds]))
        print(f"{name:14} {step:10.2f} {100 * rate / peak / (args.tp if name == 'mtp' else 1):19.1f}% {ratio:16.2f}x")


if __name__ == "__main__":
    main()

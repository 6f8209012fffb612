#!/usr/bin/env python3
# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long planning takes, from ONNX to plan, by the number of layers.

    planner_bench.py                           GPT-2 shaped, 12 to 96 layers, dp=8,tp=8
    planner_bench.py --mesh dp=4,tp=4,ep=2     another mesh
    planner_bench.py --objective time          the free optimum
    planner_bench.py --budget 0.997            and within 0.997 of the bytes that the
                                               plan without budget needs
    planner_bench.py --budget 0.997 --explain  with the reasons, too

Shapes decide the time, not sizes: hidden 128, 8 heads, batch 8. `plan` is what the
planner takes, `to plan` everything from reading the file to the plan. Each is the
least of --rounds; the last line is how well a line through the origin fits.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test/models"))
import synthetic

TO_PLAN = ("import", "simplify", "raise", "precision", "plan")


def compile_model(model, folder, arguments):
    report = folder / "report.json"
    command = [ROOT / "build/bin/mtp-compile", model, "-o", folder / "out.mtp", "--no-cache",
               "--json", report, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return json.loads(report.read_text())


def measure(layers, options, folder):
    model = folder / f"gpt{layers}"
    shape = synthetic.Shape(kind="gpt2", layers=layers, hidden=128, heads=8, feed_forward=512,
                            vocab=1024, batch=8, seq=32)
    synthetic.write(model, shape)
    arguments = ["--mesh", options.mesh, "--objective", options.objective]
    if options.budget:
        free = compile_model(model / "model.onnx", folder, arguments)
        arguments += ["--memory-budget", str(int(free["plan"]["bytes_per_rank"] * options.budget))]
    if options.explain:
        arguments.append("--explain")
    best = {"plan": float("inf"), "to_plan": float("inf")}
    for _ in range(options.rounds):
        report = compile_model(model / "model.onnx", folder, arguments)
        stages = report["compile_ms"]
        best["plan"] = min(best["plan"], stages["plan"])
        best["to_plan"] = min(best["to_plan"], sum(stages.get(stage, 0) for stage in TO_PLAN))
    plan = report["plan"]
    print(f"{layers:4} layers: plan {best['plan']:8.1f} ms, to plan {best['to_plan']:8.1f} ms, "
          f"cost {plan['cost_us']:.1f} us, bound {plan['lower_bound_us']:.1f} us")
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, nargs="+", default=[12, 24, 48, 96])
    parser.add_argument("--mesh", default="dp=8,tp=8")
    parser.add_argument("--objective", default="parallel", choices=["parallel", "time"])
    parser.add_argument("--budget", type=float)
    parser.add_argument("--explain", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        times = [measure(layers, options, Path(folder)) for layers in options.layers]
    for name in ("plan", "to_plan"):
        x = np.array(options.layers, float)
        y = np.array([time[name] for time in times])
        slope = (x @ y) / (x @ x)
        spread = ((y - y.mean()) ** 2).sum()
        fit = 1 - ((y - slope * x) ** 2).sum() / spread if spread else 1.0
        print(f"{name}: {slope:.3f} ms a layer, r^2 {fit:.4f}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The planner's sum of bytes (compiler/plan/Memory.h) over what is allocated.

    bytes_bench.py                                 every model of fixed shape, two meshes
    bytes_bench.py --model gpt2-ts --mesh tp=4     one of them
    bytes_bench.py --train                         training steps, with every stage of ZeRO

Of all layouts that are tried for budgets of 0.95, 0.75 and 0.5 of what the program
without a budget needs. Where activations are computed again the sum counts more than
there is by design: such programs are left out.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test/models"))
import cases

SHARES = (0.95, 0.75, 0.5)
LOSS = "cross_entropy:logits=logits,labels=labels"


def compile_model(model, folder, arguments):
    """`plan` of the report; none if nothing fits."""
    report = folder / "report.json"
    command = [ROOT / "build/bin/mtp-compile", cases.HERE / model / "model.onnx", "-o", folder / "out.mtp", "--quiet",
               "--json", report, *arguments]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=600)
    return json.loads(report.read_text()).get("plan") if done.returncode == 0 else None


def ratios(model, mesh, train, folder):
    arguments = ["--mesh", mesh, *(["--train", "--loss", LOSS] if train else ["--objective", "time"])]
    plan = compile_model(model, folder, arguments)
    if not plan:
        return []
    found = []
    for share in SHARES:
        within = compile_model(model, folder, [*arguments, "--memory-budget", str(int(plan["bytes_per_rank"] * share))])
        for tried in (within or {}).get("budget", {}).get("tried", []):
            if "bound" in tried and "bytes" in tried and tried["recompute"] == "none":
                found.append(tried["bound"] / tried["bytes"])
    return found


def summary(found):
    return f"{len(found):4} programs: {min(found):.3f} to {max(found):.3f}, median {statistics.median(found):.3f}"


def main():
    parser = argparse.ArgumentParser(description="The planner's sum of bytes over what is allocated.")
    parser.add_argument("--model", action="append", help="a folder of test/models; may be repeated")
    parser.add_argument("--mesh", action="append", help="may be repeated")
    parser.add_argument("--train", action="store_true")
    options = parser.parse_args()
    everything = []
    with tempfile.TemporaryDirectory() as folder:
        for model in options.model or [name for name in cases.models() if not cases.meta(name)["dynamic_dims"]]:
            if options.train and not cases.meta(model).get("loss"):
                continue
            for mesh in options.mesh or ["tp=2", "dp=2,tp=2"]:
                found = sorted(ratios(model, mesh, options.train, Path(folder)))
                everything += found
                if found:
                    print(f"{model:24} {mesh:10} {summary(found)}", flush=True)
    if everything:
        print(summary(everything), f"{sum(ratio < 1 for ratio in everything)} below 1", sep=", ")


if __name__ == "__main__":
    main()

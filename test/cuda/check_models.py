#!/usr/bin/env python3
# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models for GPUs, on the recording driver: each is compiled for device cuda,
runs three steps (one as it is, two replayed), and leaves a record that
mtp-cuda-check finds nothing wrong with. Its collectives are those of the CPU.

    check_models.py                      a few models and meshes
    check_models.py --all                every folder of test/models, forward and training

Kernels are recorded, not computed; numbers are not looked at.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from xml.sax.saxutils import quoteattr

ROOT = Path(__file__).resolve().parent.parent.parent
MODELS = ROOT / "test/models"
MESHES = ["tp=1", "tp=2", "tp=4", "dp=2,tp=2"]
# A sample that takes seconds: model, mesh, communicator, training.
SAMPLE = [("gpt2-ts", "tp=2", "nccl", False), ("llama-ts", "dp=2,tp=2", "loopback", False),
          ("gpt2-ts", "dp=2,tp=2", "nccl", True), ("bert-ts", "tp=2", "loopback", True)]


class Failure(Exception):
    pass


def loss_of(folder):
    """The loss option of a model with gradients, None for others."""
    loss = json.loads((folder / "meta.json").read_text()).get("loss")
    if not loss or loss.get("kind") != "cross_entropy" or not (folder / "grads.npz").exists():
        return None
    return f"cross_entropy:logits={loss['logits']},labels={loss['labels']}"


def dims_of(folder):
    """--dim for every dynamic dimension, as the model was exported."""
    dims = json.loads((folder / "meta.json").read_text()).get("dynamic_dims", {})
    entries = [entry for axes in dims.values() for entry in axes.values()]  # [name, size], or by key
    sizes = dict((entry["name"], entry["value"]) if isinstance(entry, dict) else entry for entry in entries)
    return [argument for name, size in sorted(sizes.items()) for argument in ("--dim", f"{name}={size}")]


class Case:
    def __init__(self, options, model, mesh, comm, training):
        self.options, self.model, self.mesh, self.comm = options, MODELS / model, mesh, comm
        self.train = ["--train", "--loss", loss_of(self.model)] if training else []
        self.name = f"{model} {mesh} {comm}{' training' if training else ''}"

    def tool(self, name, *arguments, **environment):
        command = [str(self.options.build / "bin" / name), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=300,
                              env={**os.environ, **environment})
        if done.returncode:
            raise Failure(f"{' '.join(command)}: exit {done.returncode}: {(done.stdout + done.stderr)[-1500:]}")
        return done.stdout

    def collectives(self, folder, device):
        """What the runtime counts in a step, by site."""
        artifact, report = folder / f"{device}.mtp", folder / f"{device}.json"
        options = ["--device", "cuda", "--gpu-arch", "sm_90"] if device == "cuda" else []
        options += dims_of(self.model)
        self.tool("mtp-compile", self.model / "model.onnx", "-o", artifact, "--mesh", self.mesh, "--quiet", *options,
                  *self.train)
        # Kernels of the recorder compute nothing, so it only matters that steps are taken.
        steps = ["--train", "--steps", "3"] if self.train else ["--bench=0.001"]
        environment = {}
        if device == "cuda":
            steps += ["--comm", self.comm]
            environment = {"MTP_CUDA_RECORDER": str(self.options.build / "lib/libmtp-cuda-recorder.so"),
                           "MTP_CUDA_RECORD": str(folder / "record.json")}
        self.tool("mtp-run", artifact, "--random-inputs", "--quiet", "--json", report, *steps, **environment)
        facts = json.loads(report.read_text())
        return [(site["op"], site["axis"], site["node"], site["count"], site["bytes"]) for site in facts["collectives"]]

    def run(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            gpu = self.collectives(folder, "cuda")
            checked = self.tool("mtp-cuda-check", folder / "record.json")
            if gpu != self.collectives(folder, "cpu"):
                raise Failure(f"collectives differ from the CPU's: {gpu}")
            return checked.strip()


class Direct(Case):
    """Compiled and run by one process, for the device that it finds."""

    def __init__(self, options):
        super().__init__(options, "gpt2-ts", "tp=2", "nccl", False)
        self.name += " from ONNX"

    def run(self):
        with tempfile.TemporaryDirectory() as name:
            report = Path(name) / "report.json"
            self.tool("mtp-run", self.model / "model.onnx", "--device", "cuda", "--mesh", self.mesh, "--random-inputs",
                      "--no-cache", "--quiet", "--json", report,
                      MTP_CUDA_RECORDER=str(self.options.build / "lib/libmtp-cuda-recorder.so"))
            facts = json.loads(report.read_text())
            if (facts["device"], facts["comm"]) != ("cuda", "nccl"):
                raise Failure(f"ran on {facts['device']} with {facts['comm']}")
            return "ran"


def cases_of(options):
    if not options.all:
        return [Direct(options)] + [Case(options, *case) for case in SAMPLE]
    cases = []
    for folder in sorted(MODELS.iterdir()):
        if not (folder / "model.onnx").exists():
            continue
        for mesh in MESHES:
            for training in (False, True):
                if not training or loss_of(folder):
                    cases += [Case(options, folder.name, mesh, comm, training) for comm in ("nccl", "loopback")]
    return cases


def run_cases(suite, description, cases_of):
    """Runs the cases that the command line asks for, prints and counts them; the exit code."""
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--all", action="store_true", help="every case, not a sample")
    parser.add_argument("--only", default="", help="cases with this in their name")
    parser.add_argument("--junit", type=Path)
    options = parser.parse_args()
    results, failed = [], 0
    for case in cases_of(options):
        if options.only not in case.name:
            continue
        start, problem = time.time(), ""
        try:
            text = case.run()
        except (Failure, subprocess.TimeoutExpired) as error:
            text = problem = str(error)
            if "unsupported nodes" in problem:
                print(f"left out {case.name}: the CPU doesn't run it, either", flush=True)
                continue
            failed += 1
        seconds = time.time() - start
        print(f"{'FAILED' if problem else 'ok':6} {case.name}: {text} ({seconds:.1f} s)", flush=True)
        body = f"<failure message={quoteattr(problem)}/>" if problem else ""
        results.append(f'<testcase classname="{suite}" name={quoteattr(case.name)} time="{seconds:.2f}">'
                       f"{body}</testcase>")
    if options.junit:
        options.junit.write_text(f"<testsuite>{''.join(results)}</testsuite>\n")
    print(f"{suite}: {len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(run_cases("cuda", __doc__, cases_of))

#!/usr/bin/env python3
# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compile the test models for GPUs and assemble every kernel with ptxas.

    assemble.py                    the fixed list: each kind of model, mesh and architecture;
                                   attention and its gradients with long heads
    assemble.py --all              every model, mesh and architecture, forward and training
    assemble.py --filter t5        only cases whose name contains this

A case passes if mtp-compile writes an artifact and its PTX, if ptxas takes that
for the architecture, and if no kernel spills registers but those that
bench/gpu/spills.md lists. Without ptxas there is nothing to do, which is said.
"""

import argparse
import concurrent.futures
import itertools
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

ROOT = Path(__file__).resolve().parent.parent.parent
MODELS = ROOT / "test/models"
ARCHITECTURES = ["sm_75", "sm_80", "sm_90"]
MESHES = ["tp=1", "tp=2", "tp=4", "dp=2,tp=2"]
LOSS = "cross_entropy:logits=logits,labels=labels"
# Data-dependent shapes: no device runs it.
REFUSED = ["mixtral-ts"]


class Failure(Exception):
    pass


@dataclass(frozen=True)
class Case:
    model: str
    mesh: str
    arch: str
    train: bool = False
    precision: str = "f32"

    def name(self):
        return " ".join([self.model, self.mesh, self.arch, self.precision, "training" if self.train else "forward"])


def models():
    return sorted(path.parent.name for path in MODELS.glob("*/model.onnx") if path.parent.name not in REFUSED)


def trains(model):
    return (MODELS / model / "grads.npz").exists()


def every_case():
    for model, mesh, arch in itertools.product(models(), MESHES, ARCHITECTURES):
        yield Case(model, mesh, arch)
        if trains(model):
            yield Case(model, mesh, arch, True)


def fixed_cases():
    """Each family and each mesh, architecture and precision."""
    return [
        Case("gpt2-ts", "tp=2", "sm_75"),
        Case("gpt2-dynamo", "dp=2,tp=2", "sm_90", True),
        Case("llama-dynamo", "tp=4", "sm_80"),
        Case("t5-dynamo-dyn", "tp=2", "sm_80", True),
        Case("mixtral-dynamo", "tp=1", "sm_90"),
        Case("vit-dynamo", "tp=2", "sm_75", True),
        Case("gpt2-ts", "tp=2", "sm_90", True, "bf16"),
        Case("bert-cls-dynamo", "tp=2", "sm_75", True, "f64"),
        Case("gpt2-dynamo", "tp=2", "sm_75", False, "f16"),
        Case("gpt2-dynamo", "tp=2", "sm_80", False, "tf32"),
    ]


def attention_cases(every):
    """Heads of the sizes that real models have, with their gradients."""
    sample = [("sm_75", "f16", 128), ("sm_80", "tf32", 96), ("sm_90", "bf16", 128)]
    others = itertools.product(["sm_75", "sm_80", "sm_90"], ["f16", "bf16", "tf32", "f32"], [64, 96, 128])
    for arch, precision, depth in others if every else sample:
        if arch != "sm_75" or precision in ("f16", "f32"):
            yield Case(f"attention{depth}", "tp=1", arch, True, precision)


def attention_module(depth):
    """Attention of grouped heads under a causal mask and one of numbers, forward and backward."""
    q, k, m, s = f"tensor<2x4x200x{depth}xf32>", f"tensor<2x2x200x{depth}xf32>", "tensor<200x200xf32>", "tensor<2x4x200xf32>"
    attributes = "{scale = 0.125 : f64, softcap = 30.0 : f64, causal}"
    return f"""func.func @main(%q: {q}, %k: {k}, %v: {k}, %m: {m}, %g: {q}) -> ({q}, {q}, {k}, {k}) {{
  %y, %l = mtp.attention %q, %k, %v mask %m {attributes} : ({q}, {k}, {k}, {m}) -> ({q}, {s})
  %dq, %dk, %dv, %dm = mtp.attention_gradient %q, %k, %v mask %m, %y, %l, %g {attributes} : ({q}, {k}, {k}, {m}, {q}, {s}, {q}) -> ({q}, {k}, {k}, {m})
  return %y, %dq, %dk, %dv : {q}, {q}, {k}, {k}
}}
"""


def dim_flags(model):
    """Sizes of the dynamic dimensions, those of inputs.npz."""
    meta, sizes = json.loads((MODELS / model / "meta.json").read_text()), {}
    for dims in meta.get("dynamic_dims", {}).values():
        for dim in dims.values():
            name, size = (dim["name"], dim["value"]) if isinstance(dim, dict) else dim
            sizes[name] = size
    return [flag for name, size in sizes.items() for flag in ("--dim", f"{name}={size}")]


def known_spills():
    """Kernel and architecture of the rows of the table."""
    text = (ROOT / "bench/gpu/spills.md").read_text()
    return set(re.findall(r"^\| `(\w+)` \| (sm_\d+) \|", text, re.M))


def run(command, timeout):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, errors="replace",
                          timeout=timeout)
    if done.returncode:
        raise Failure(f"{Path(command[0]).name}: exit {done.returncode}: {(done.stderr or done.stdout).strip()[-1000:]}")
    return done.stderr


def spilling(report):
    """Kernels that spill, from what ptxas -v says."""
    names = re.split(r"Compiling entry function '(\w+)'", report)
    for name, text in zip(names[1::2], names[2::2]):
        spilled = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", text)
        if not spilled:
            raise Failure(f"ptxas says nothing of the spills of {name}")
        if spilled.group(1) != "0" or spilled.group(2) != "0":
            yield name


def check(ptxas, case, folder):
    flags = ["--mesh", case.mesh, "--precision", case.precision]
    if case.model.startswith("attention"):
        model = folder / "attention.mlir"
        model.write_text(attention_module(int(case.model.removeprefix("attention"))))
    else:
        model = MODELS / case.model / "model.onnx"
        flags += dim_flags(case.model)
        if case.train:
            flags += ["--train", "--loss", LOSS]
    run([ROOT / "build/bin/mtp-compile", model, "-o", folder / "model.mtp", "--device",
         "cuda", "--gpu-arch", case.arch, "--quiet", "--no-cache", "--dump-dir", folder, *flags], 300)
    if (folder / "model.mtp").stat().st_size == 0:
        raise Failure("the artifact is empty")
    report = run([ptxas, "-v", f"-arch={case.arch}", folder / "kernels.ptx", "-o", folder / "kernels.cubin"], 300)
    kernels = len(re.findall(r"Compiling entry function", report))
    entries = len(re.findall(r"^\.visible \.entry", (folder / "kernels.ptx").read_text(), re.M))
    if kernels == 0 or kernels != entries:
        raise Failure(f"{entries} kernels in the PTX, {kernels} assembled")
    bad = sorted(name for name in spilling(report) if (re.sub(r"_\d+$", "", name), case.arch) not in known_spills())
    if bad:
        raise Failure(f"registers are spilled by {', '.join(bad)}")
    return kernels


def find_ptxas():
    return shutil.which("ptxas") or shutil.which("ptxas", path="/usr/local/cuda/bin")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--filter", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--junit")
    arguments = parser.parse_args()
    ptxas, results = find_ptxas(), []
    models_of_list = every_case() if arguments.all else fixed_cases()
    cases = [case for case in itertools.chain(attention_cases(arguments.all), models_of_list) if arguments.filter in case.name()]
    if not ptxas:
        print("assemble: skipped: ptxas of the CUDA toolkit is not on this machine")
        cases = []

    def one(case):
        start = time.time()
        with tempfile.TemporaryDirectory() as folder:
            try:
                kernels, failure = check(ptxas, case, Path(folder)), None
            except (Failure, subprocess.TimeoutExpired) as error:
                kernels, failure = 0, str(error)
        text = f"FAILED: {failure}" if failure else f"{kernels} kernels"
        print(f"{case.name()}: {text} ({time.time() - start:.1f} s)", flush=True)
        return case, failure

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        results = list(pool.map(one, cases))
    if arguments.junit:
        rows = []
        for case, failure in results:
            inside = f"<failure message={quoteattr(failure)}/>" if failure else ""
            rows.append(f"<testcase classname=\"assemble\" name={quoteattr(case.name())}>{inside}</testcase>")
        Path(arguments.junit).write_text(f"<testsuite>{''.join(rows)}</testsuite>\n")
    failed = sum(1 for _, failure in results if failure)
    print(f"assemble: {len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

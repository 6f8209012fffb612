#!/usr/bin/env python3
# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Run the models with mtp-run, as a script outside the project would, and compare.

    run_models.py                    the fixed list: every model, mesh and mode
    run_models.py --full             every model, mesh, plan and mode (an hour)
    run_models.py --all              every combination of them (many hours)
    run_models.py --all --every 50   every 50th of them
    run_models.py --filter gpt2-ts   only cases whose name contains this

f32 is compared with ONNX Runtime (outputs.npz), f64 with the float64 model
(outputs64.npz) and with one rank of mtp in float64. The error between two
tensors is max|a-b| / max|b|.
"""

import argparse
import concurrent.futures
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent)]
import cases as case_list
import junit
from cases import HERE, Case

ROOT = HERE.parent.parent
F32_BOUND, F64_BOUND, RANKS_BOUND = 2e-5, 2e-7, 1e-12


class Failure(Exception):
    pass


def error(a, b):
    """max|a-b| / max|b|; NaN equals NaN."""
    if a.shape != b.shape:
        raise Failure(f"shape {list(a.shape)} instead of {list(b.shape)}")
    if a.dtype.kind in "iub":
        return 0.0 if (a == b).all() else float("inf")
    both = np.isnan(a) & np.isnan(b)
    a, b = np.where(both, 0, a).astype(np.float64), np.where(both, 0, b).astype(np.float64)
    same = a == b
    largest = np.abs(b[np.isfinite(b)]).max(initial=0)
    distance = np.abs(np.where(same, 0, a) - np.where(same, 0, b)).max(initial=0)
    if distance == 0:
        return 0.0
    return float(distance / largest) if np.isfinite(distance) else float("inf")


def compare(got, expected, bound, what):
    for name in expected.files:
        if name not in got.files:
            raise Failure(f"output {name} is missing")
        e = error(got[name], expected[name])
        if not e <= bound:
            raise Failure(f"{name}: {e:.2e} from {what}, bound {bound:.0e}")


def check_report(report):
    """What was counted is what the plan predicted."""
    for site in report["collectives"]:
        for key in ("count", "bytes"):
            if site[key] != site["predicted_" + key]:
                raise Failure(f"{site['op']} at {site['node']}: {key} {site[key]}, "
                              f"predicted {site['predicted_' + key]}")
    if report["arena_bytes_per_rank"] != report["plan"]["arena_bytes_per_rank"]:
        raise Failure(f"arena of {report['arena_bytes_per_rank']} bytes, planned "
                      f"{report['plan']['arena_bytes_per_rank']}")


class Runner:
    def __init__(self, options, folder):
        self.options, self.folder = options, Path(folder)
        self.lock, self.references = threading.Lock(), {}

    def run(self, case, name):
        """Runs mtp-run; returns its outputs and its report."""
        model = HERE / case.model
        outputs, report = self.folder / f"{name}.npz", self.folder / f"{name}.json"
        command = [self.options.mtp_run, str(model / "model.onnx"), "--quiet",
                   "--inputs", str(model / f"inputs{case.shape}.npz"),
                   "--outputs", str(outputs), "--json", str(report),
                   "--threads-per-rank", "1", *case.flags()]
        if case.plan.startswith("random"):
            command += ["--no-cache"]  # nobody asks for it again
        elif self.options.cache_dir:
            command += ["--cache-dir", self.options.cache_dir]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace",
                              timeout=self.options.timeout)
        if done.returncode:
            raise Failure(f"exit {done.returncode}: {done.stderr.strip()[-1500:]}")
        loaded, facts = np.load(outputs), json.loads(report.read_text())
        return loaded, facts

    def one_rank(self, model, shape, mode):
        """The f64 outputs of one rank, made once: in `mode` no-raise, the constants of a written-out GELU
        are those of the file, in f32; a raised one has them in f64, as PyTorch does."""
        mode = mode if mode == "no-raise" else ""
        key = (model, shape, mode)
        with self.lock:
            mine = key not in self.references
            if mine:
                self.references[key] = concurrent.futures.Future()
            future = self.references[key]
        if mine:
            try:
                future.set_result(self.run(Case(model, precision="f64", shape=shape, mode=mode),
                                           f"reference-{model}{shape}{mode}")[0])
            except Exception as failure:
                future.set_exception(Failure(f"one rank in f64: {failure}"))
        return future.result()

    def check(self, case, index):
        outputs, report = self.run(case, f"case-{index}")
        folder = HERE / case.model
        if case.precision == "f32":
            compare(outputs, np.load(folder / f"outputs{case.shape}.npz"), F32_BOUND, "ONNX Runtime")
        else:
            compare(outputs, np.load(folder / f"outputs64{case.shape}.npz"), F64_BOUND, "outputs64")
            compare(outputs, self.one_rank(case.model, case.shape, case.mode), RANKS_BOUND, "one rank")
        check_report(report)

    def check_refused(self, model):
        folder = HERE / model
        done = subprocess.run(
            [self.options.mtp_run, str(folder / "model.onnx"), "--inputs", str(folder / "inputs.npz"),
             "--outputs", str(self.folder / "refused.npz")],
            capture_output=True, text=True, timeout=self.options.timeout)
        if done.returncode != 1 or "NonZero" not in done.stderr:
            raise Failure(f"exit {done.returncode} instead of 1 with a reason: {done.stderr[-500:]}")
        if (self.folder / "refused.npz").exists():
            raise Failure("outputs are written for a refused model")

    def check_minimal(self, model):
        """tp=2: weights split, two all-reduces a layer, no gather of weights or logits."""
        facts = [self.run(Case(model, mesh), f"facts-{model}-{mesh[-1]}")[1] for mesh in ("tp=1", "tp=2")]
        whole, split = (fact["parameter_bytes_per_rank"] for fact in facts)
        if not split < 0.6 * whole:
            raise Failure(f"a rank has {split} bytes of parameters of {whole}")
        kinds = {}
        for site in facts[1]["collectives"]:
            kinds.setdefault(site["kind"], []).append(site)
        # Two a layer. The embedding has one more, or a reduce-scatter and an
        # all-gather where the table of positions is split by columns.
        layers, count = case_list.meta(model)["layers"], {kind: len(sites) for kind, sites in kinds.items()}
        embedding = {kind: number - (2 * layers if kind == "all_reduce" else 0) for kind, number in count.items()}
        embedding = {kind: number for kind, number in embedding.items() if number}
        if embedding not in ({}, {"all_reduce": 1}, {"reduce_scatter": 1, "all_gather": 1}):
            raise Failure(f"{count} with {layers} layers")
        weights = {parameter["name"] for parameter in facts[1]["parameters"]}
        largest = max(site["bytes"] for site in kinds["all_reduce"])
        for site in kinds.get("all_gather", []):
            if site["node"] in weights or site["bytes"] > largest:
                raise Failure(f"{site['bytes']} bytes are gathered at {site['node']}")


def has_heads_for_two_ranks(model):
    """GPT-2 and LLaMA that have key and value heads for each of two ranks."""
    facts = case_list.meta(model)
    return (facts["family"] in ("gpt2", "llama") and facts["kv_heads"] % 2 == 0
            and not model.startswith("gpt2-kv"))


def main():
    parser = argparse.ArgumentParser(description="Run the models and compare.")
    parser.add_argument("--mtp-run", default=str(ROOT / "build/bin/mtp-run"))
    parser.add_argument("--full", action="store_true", help="every model, mesh, plan and mode")
    parser.add_argument("--seed", type=int, default=0, help="with --full: of the first random plan")
    parser.add_argument("--all", action="store_true", help="every combination")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each Nth case")
    parser.add_argument("--skip", type=int, default=0, metavar="N", help="not the first N cases")
    parser.add_argument("--filter", default="", help="only cases whose name contains this")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--cache-dir", help="the compiler's cache")
    parser.add_argument("--junit", help="write the results as XML")
    parser.add_argument("--verbose", action="store_true", help="print passed cases too")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(options, folder)
        name, chosen = "models", case_list.fixed_cases()
        if options.full:
            name, chosen = "full", case_list.full_cases(options.seed)
        if options.all:
            name, chosen = "all", case_list.every_case()
        work = [(case.name(), runner.check, (case, index)) for index, case in enumerate(chosen)]
        work += [(f"{model} is refused", runner.check_refused, (model,)) for model in case_list.REFUSED]
        work += [(f"{model} tp=2 is minimal", runner.check_minimal, (model,))
                 for model in case_list.models() if has_heads_for_two_ranks(model)]
        work = [item for item in work if options.filter in item[0]][options.skip::options.every]
        results = []

        def one(item):
            name, function, arguments = item
            start, problem = time.time(), None
            try:
                function(*arguments)
            except Failure as failure:
                problem = str(failure)
            except subprocess.TimeoutExpired:
                problem = f"no end after {options.timeout:.0f} s"
            return name, problem, time.time() - start

        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for result in pool.map(one, work):
                results.append(result)
                if result[1] or options.verbose:
                    print(f"{'FAIL' if result[1] else 'ok  '} {result[0]}" + (f": {result[1]}" if result[1] else ""),
                          flush=True)
    failed = sum(1 for result in results if result[1])
    if options.junit:
        junit.write(options.junit, "models", results)
    print(f"{name}: {len(results) - failed} passed, {failed} failed", flush=True)
    sys.exit(1 if failed or not results else 0)


if __name__ == "__main__":
    main()

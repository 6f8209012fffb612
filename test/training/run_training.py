#!/usr/bin/env python3
# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Train the test models with mtp-run, as a script outside the project would, and compare.

    run_training.py                    the fixed list: every model, mesh and mode once
    run_training.py --all              every combination (hours)
    run_training.py --all --every 50   every 50th of them
    run_training.py --filter gpt2-ts   only what has this in its name

Gradients in f64 are compared with PyTorch's and with those of one rank, in f32 with
PyTorch's. The error between two tensors is max|a-b| / max|b|; of a gradient that is
zero up to rounding the divisor is a thousandth of the largest gradient's.
"""

import argparse
import concurrent.futures
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent)]
import batches
import budgets
import bugs
import cases
import checks
import exports
import footprints
import junit
import paper
from cases import Case
from training import MODELS, ROOT, Failure, Runner, close_gradients

# The golden gradients are rounded to float32.
GOLDEN_BOUND, RANKS_BOUND, F32_BOUND = 5e-7, 1e-11, 1e-3


def check_report(report):
    """What was counted is what the plan predicted; a bucket has the sum of its parts."""
    for site in report["collectives"]:
        if site["bytes"] != site["predicted_bytes"] or not 0 < site["count"] <= site["predicted_count"]:
            raise Failure(f"{site['op']} at {site['node']}: {site['count']} times, {site['bytes']} bytes, predicted "
                          f"{site['predicted_count']} times, {site['predicted_bytes']} bytes")
    if report["arena_bytes_per_rank"] != report["plan"]["arena_bytes_per_rank"]:
        raise Failure(f"arena of {report['arena_bytes_per_rank']} bytes, planned "
                      f"{report['plan']['arena_bytes_per_rank']}")


class Gradients:
    """Gradients of the models, compared with the golden ones and with one rank."""

    def __init__(self):
        self.lock, self.references, self.worst = threading.Lock(), {}, {}

    def run(self, runner, case):
        folder = MODELS / case.model
        result = runner.train(folder / "model.onnx", [folder / "inputs.npz", folder / "labels.npz"], checks.LOSS,
                              case.flags())
        check_report(result.report)
        return result.gradients

    def one_rank(self, runner, model, mode):
        """Without raising for cases without: constants of a written-out GELU are then those of the file."""
        key = (model, mode if mode == "no-raise" else "")
        with self.lock:
            mine = key not in self.references
            if mine:
                self.references[key] = concurrent.futures.Future()
            future = self.references[key]
        if mine:
            try:
                future.set_result((self.run(runner, Case(model, mode=key[1])), None))
            except Exception as failure:
                # Not the exception: each that raises it again would hang its frames, and all they hold, on it.
                future.set_result((None, f"one rank: {failure}"))
        gradients, problem = future.result()
        if problem:
            raise Failure(problem)
        return gradients

    def check(self, runner, folder, case):
        got = self.run(runner, case)
        with np.load(MODELS / case.model / "grads.npz") as archive:
            golden = {name: archive[name].astype(np.float64) for name in archive.files}
        if case.precision == "f32":
            return self.note("f32 to PyTorch", close_gradients(got, golden, F32_BOUND, "PyTorch"))
        self.note("f64 to PyTorch", close_gradients(got, golden, GOLDEN_BOUND, "PyTorch"))
        self.note("f64 to one rank", close_gradients(got, self.one_rank(runner, case.model, case.mode), RANKS_BOUND, "one rank"))

    def note(self, kind, error):
        with self.lock:
            self.worst[kind] = max(error, self.worst.get(kind, 0))


def work_list(options, gradients):
    """(name, function, arguments) of everything that is checked."""
    chosen = list(cases.every_case()) if options.all else cases.fixed_cases()
    work = [(f"gradients {case.name()}", gradients.check, (case, )) for case in chosen]
    plain = [checks.dropout_masks_depend_on_seed_and_step,
             checks.optimizers_follow_their_formulas, checks.collectives_are_those_of_the_paper,
             checks.one_reduction_a_parameter, checks.memory_follows_the_formulas,
             checks.recomputing_needs_less_memory, checks.refusals,
             checks.an_op_without_gradient_is_named, checks.copies_are_named, checks.freezing_and_checking, checks.sixteen_bits_train, checks.overflow_changes_nothing,
             checks.artifacts_train]
    work += [(function.__name__.replace("_", " "), function, ()) for function in
             plain + batches.CASES + budgets.CASES + bugs.CASES + exports.CASES + footprints.CASES + paper.CASES]
    for i, path in enumerate(sorted((checks.HERE / "curves").glob("*.json"))):
        mesh = cases.MESHES[i % len(cases.MESHES)]
        work.append((f"curve {path.stem} {mesh}", checks.follows_torch, (path.stem, mesh)))
    for mesh in cases.MESHES[1:]:
        work.append((f"ten steps gpt2-ts-dropout {mesh}", checks.ten_steps, ("gpt2-ts-dropout", mesh)))
    for mode, mesh in (("zero1", "dp=2,tp=2"), ("zero2", "dp=2,tp=4"), ("zero3", "dp=2"), ("sequence", "tp=4"),
                       ("recompute", "dp=2,tp=2"), ("no-raise", "tp=3")):
        work.append((f"ten steps gpt2-ts-dropout {mesh} {mode}", checks.ten_steps,
                     ("gpt2-ts-dropout", mesh, *cases.MODES[mode])))
    work += [(f"trainable {model}", checks.trainable_is_as_described, (model, )) for model in cases.models()]
    return [item for item in work if options.filter in item[0]][::options.every]


def main():
    parser = argparse.ArgumentParser(description="Train the models and compare.")
    parser.add_argument("--mtp-run", default=str(ROOT / "build/bin/mtp-run"))
    parser.add_argument("--all", action="store_true", help="every combination")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each Nth")
    parser.add_argument("--filter", default="", help="only what has this in its name")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--cache-dir", help="the compiler's cache")
    parser.add_argument("--junit", help="write the results as XML")
    parser.add_argument("--verbose", action="store_true", help="print what passed, too")
    options = parser.parse_args()
    gradients = Gradients()
    work, results = work_list(options, gradients), []

    def one(item):
        name, function, arguments = item
        start, problem = time.time(), None
        with tempfile.TemporaryDirectory() as folder:
            runner = Runner(options.mtp_run, folder, options.cache_dir, options.timeout)
            try:
                function(runner, Path(folder), *arguments)
            except Failure as failure:
                problem = str(failure)
            except subprocess.TimeoutExpired:
                problem = f"no end after {options.timeout:.0f} s"
        return name, problem, time.time() - start

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for result in pool.map(one, work):
            results.append(result)
            if result[1] or options.verbose:
                print(f"{'FAIL' if result[1] else 'ok  '} {result[0]}" + (f": {result[1]}" if result[1] else ""), flush=True)
    failed = sum(1 for result in results if result[1])
    if options.junit:
        junit.write(options.junit, "training", results)
    if gradients.worst:
        print("largest errors of gradients: " + ", ".join(f"{k} {v:.1e}" for k, v in sorted(gradients.worst.items())))
    print(f"training: {len(results) - failed} passed, {failed} failed", flush=True)
    sys.exit(1 if failed or not results else 0)


if __name__ == "__main__":
    main()

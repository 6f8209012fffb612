# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs ONNX's own node tests through mtp-run.

Every test of the `onnx` package whose operator mtp reads, including those in which
the operator is written out as a function of simpler ones. A test ends as
  ok       the outputs agree within the test's tolerance,
  refused  exit 1 and each reason (kind `unsupported`) is one of node-refused.txt,
  FAILED   anything else: another exit code, a wrong number, a wrong shape or type.
Operands that say how an operator works (shapes, axes, sizes) are inputs in the
tests; mtp wants them known, so they become initializers.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
from onnx import numpy_helper

FIRST_OPSET, LAST_OPSET, LAST_IR = 11, 24, 13

# Inputs, by operator, that must be known when a model is compiled.
KNOWN = {
    "Reshape": [1], "Expand": [1], "Slice": [1, 2, 3, 4], "Squeeze": [1], "Unsqueeze": [1],
    "Tile": [1], "Split": [1], "Pad": [1, 2, 3], "TopK": [1], "CumSum": [1], "OneHot": [1],
    "Range": [0, 1, 2], "Trilu": [1], "ConstantOfShape": [0], "If": [0], "SplitToSequence": [1],
    "SequenceAt": [1], "SequenceInsert": [2], "Dropout": [1, 2], "Attention": [6], "Compress": [1],
    **{"Reduce" + kind: [1] for kind in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare",
                                        "LogSum", "LogSumExp")},
}
# Dropout is the identity unless mtp-run trains.
IDENTITY = {"test_training_dropout", "test_training_dropout_default", "test_training_dropout_default_mask",
            "test_training_dropout_mask"}
PLAIN_TYPES = {np.dtype(t) for t in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?")}


def collect():
    """The tests of the onnx package, by name."""
    with warnings.catch_warnings(), np.errstate(all="ignore"), open(os.devnull, "w") as quiet:
        warnings.simplefilter("ignore")
        with contextlib.redirect_stdout(quiet):
            from onnx.backend.test.case.node import collect_testcases
            return sorted(collect_testcases(None), key=lambda case: case.name)


def operators(mtp_run):
    text = subprocess.run([mtp_run, "--capabilities"], check=True, capture_output=True, text=True).stdout
    return set(json.loads(text)["ops"])


def is_plain(value):
    return isinstance(value, np.ndarray) and value.dtype in PLAIN_TYPES


def prepare(model, inputs):
    """The model with known operands as initializers, and the other inputs."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    for opset in model.opset_import:
        if opset.domain in ("", "ai.onnx"):
            opset.version = min(max(opset.version, FIRST_OPSET), LAST_OPSET)
    model.ir_version = min(max(model.ir_version, 4), LAST_IR)
    values = {info.name: value for info, value in zip(model.graph.input, inputs)}
    known = set()
    for node in model.graph.node:
        for index in KNOWN.get(node.op_type, []):
            if index < len(node.input) and node.input[index] in values:
                known.add(node.input[index])
    if "_expanded" in model.graph.name or len(model.graph.node) > 1:
        # Written out, an operand passes through other operators: by the type.
        known |= {name for name, value in values.items()
                  if is_plain(value) and value.dtype == np.int64 and value.ndim <= 1}
    for name in known:
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(values.pop(name)), name))
    kept = [info for info in model.graph.input if info.name not in known]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    return model, values


def run_mtp(mtp_run, model, inputs, folder, extra=()):
    """(exit code, error kind, message, outputs by name)."""
    folder = pathlib.Path(folder)
    onnx.save(model, folder / "model.onnx")
    command = [mtp_run, str(folder / "model.onnx"), "--quiet", "--json", str(folder / "run.json"),
               "--outputs", str(folder / "out.npz"), "--no-cache", "--threads-per-rank", "1", *extra]
    if inputs:
        np.savez(folder / "in.npz", **inputs)
        command += ["--inputs", str(folder / "in.npz")]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return -1, "timeout", "more than 120 s", {}
    error = {}
    if (folder / "run.json").exists():
        error = json.loads((folder / "run.json").read_text()).get("error") or {}
    outputs = {}
    if result.returncode == 0:
        with np.load(folder / "out.npz") as data:
            outputs = {name: data[name] for name in data.files}
    return result.returncode, error.get("kind", ""), error.get("message") or result.stderr.strip(), outputs


def difference(actual, expected, rtol, atol):
    """What is wrong with `actual`; "" if nothing."""
    if actual is None:
        return "is missing"
    if actual.shape != expected.shape:
        return f"has shape {list(actual.shape)}, expected {list(expected.shape)}"
    if actual.dtype != expected.dtype:
        return f"has type {actual.dtype}, expected {expected.dtype}"
    if expected.dtype.kind == "f":
        a, b = actual.astype("f8"), expected.astype("f8")
        if not np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True):
            with np.errstate(all="ignore"):
                return f"differs by up to {np.nanmax(np.abs(a - b)) if a.size else 0:.3g}: {a.ravel()[:6]} expected {b.ravel()[:6]}"
    elif not np.array_equal(actual, expected):
        return f"differs: {actual.ravel()[:8]} expected {expected.ravel()[:8]}"
    return ""


def run_case(mtp_run, case):
    """(state, text)."""
    inputs, expected = case.data_sets[0]
    model, values = prepare(case.model, inputs)
    names = [info.name for info in model.graph.output]
    if not all(is_plain(v) for v in values.values()) or not all(is_plain(v) for v in expected):
        return "skipped", "a type that .npz files do not have"
    with tempfile.TemporaryDirectory() as folder:
        code, kind, message, outputs = run_mtp(mtp_run, model, values, folder)
    if code == 1 and kind == "unsupported":
        return "refused", message
    if code != 0:
        return "FAILED", f"exit {code} ({kind}): {message}"
    for name, value in zip(names, expected):
        expected_value = np.asarray(value)
        atol = 2e-3 if expected_value.dtype == np.float16 else 1e-6
        wrong = difference(outputs.get(name), expected_value, case.rtol, max(case.atol, atol))
        if wrong:
            return "FAILED", f"output '{name}' {wrong}"
    return "ok", ""


def relevant(case, ops):
    if case.model is None or not case.data_sets or case.name in IDENTITY:
        return False
    model = case.model
    if any(opset.domain not in ("", "ai.onnx") for opset in model.opset_import):
        return False
    name = re.sub(r"_expanded.*", "", case.name)
    return all(node.op_type in ops for node in model.graph.node) or ("_expanded" in case.name and name in relevant.names)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mtp_run")
    parser.add_argument("--filter", default="", help="a regular expression for names")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    allowed = [line for line in pathlib.Path(__file__).with_name("node-refused.txt").read_text().splitlines()
               if line and line[0] != "#"]
    ops = operators(args.mtp_run)
    cases = collect()
    relevant.names = {case.name for case in cases if case.model and all(n.op_type in ops for n in case.model.graph.node)}
    cases = [case for case in cases if relevant(case, ops) and re.search(args.filter, case.name)]
    counts, used = collections.Counter(), set()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for case, (state, message) in zip(cases, pool.map(lambda case: run_case(args.mtp_run, case), cases)):
            if state == "refused":
                # The first line counts the nodes, each other one is a reason.
                for reason in message.splitlines()[1:]:
                    matching = [pattern for pattern in allowed if re.match(pattern, reason.strip())]
                    used.update(matching)
                    if not matching:
                        state = "FAILED"
            counts[state] += 1
            if state == "FAILED" or args.verbose:
                print(f"{state:8} {case.name}: {' '.join(message.split())[:400]}", flush=True)
    for pattern in allowed:
        if pattern not in used and not args.filter:
            print(f"note: nothing is refused any more because of: {pattern}")
    print(f"{len(cases)} node tests: " + ", ".join(f"{n} {state}" for state, n in sorted(counts.items())))
    return 1 if counts["FAILED"] or not counts["ok"] else 0


if __name__ == "__main__":
    sys.exit(main())

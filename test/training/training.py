# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs mtp-run --train as a script outside the project would, and compares."""

import json
import math
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MODELS = HERE.parent / "models"
# A gradient that is zero up to rounding is compared with this part of the largest one.
GRADIENT_FLOOR = 1e-3


class Failure(Exception):
    pass


@dataclass
class Result:
    """What a run of training left."""
    report: dict
    gradients: dict = field(default_factory=dict)
    parameters: dict = field(default_factory=dict)
    input_gradients: dict = field(default_factory=dict)

    @property
    def loss(self):
        return self.report["loss"]

    @property
    def norm(self):
        return self.report["grad_norm"]


class Runner:
    """Runs mtp-run in a folder of its own."""

    def __init__(self, mtp_run, folder, cache_dir=None, timeout=300):
        self.mtp_run, self.folder = str(mtp_run), Path(folder)
        self.cache_dir, self.timeout, self.count = cache_dir, timeout, 0

    def command(self, model, inputs, loss, flags):
        command = [self.mtp_run, str(model), "--train", "--loss", loss, "--quiet", "--threads-per-rank", "1"]
        for file in inputs:
            command += ["--inputs", str(file)]
        if self.cache_dir:
            command += ["--cache-dir", str(self.cache_dir)]
        return command + [str(flag) for flag in flags]

    def call(self, model, inputs, loss, flags):
        return subprocess.run(self.command(model, inputs, loss, flags), capture_output=True, text=True,
                              errors="replace", timeout=self.timeout)

    def train(self, model, inputs, loss, flags=(), parameters=False, input_gradients=False, gradients=True):
        self.count += 1
        base = self.folder / f"run-{self.count}-{id(flags)}"
        files = {"report": f"{base}.json", "gradients": f"{base}.g.npz", "parameters": f"{base}.p.npz",
                 "input_gradients": f"{base}.i.npz"}
        more = ["--json", files["report"]]
        for wanted, flag in ((gradients, "gradients"), (parameters, "parameters"), (input_gradients, "input_gradients")):
            if wanted:
                name = {"gradients": "--dump-grads", "parameters": "--dump-params",
                        "input_gradients": "--dump-input-grads"}[flag]
                more += [name, files[flag]]
        done = self.call(model, inputs, loss, list(flags) + more)
        if done.returncode:
            raise Failure(f"exit {done.returncode}: {done.stderr.strip()[-1500:]}")
        result = Result(json.loads(Path(files["report"]).read_text()))
        for wanted, key in ((gradients, "gradients"), (parameters, "parameters"), (input_gradients, "input_gradients")):
            if wanted:
                with np.load(files[key]) as archive:
                    setattr(result, key, {name: archive[name] for name in archive.files})
        for file in files.values():
            Path(file).unlink(missing_ok=True)
        return result


def worst(got, expected, floor=0.0):
    """Largest max|a-b| / max|b| over all tensors, and whose it is."""
    if set(got) != set(expected):
        raise Failure(f"missing {sorted(set(expected) - set(got))}, extra {sorted(set(got) - set(expected))}")
    largest = max((np.abs(value).max(initial=0) for value in expected.values()), default=0)
    most = (0.0, "")
    for name, value in expected.items():
        if got[name].shape != value.shape:
            raise Failure(f"{name} has shape {list(got[name].shape)} instead of {list(value.shape)}")
        distance = np.abs(got[name].astype(np.float64) - value).max(initial=0)
        scale = max(np.abs(value).max(initial=0), floor * largest)
        error = 0.0 if distance == 0 else distance / scale if scale else float("inf")
        if not error <= most[0]:
            most = (float(error), name)
    return most


def close(got, expected, bound, what, floor=0.0):
    error, name = worst(got, expected, floor)
    if not error <= bound:
        raise Failure(f"{name}: {error:.2e} from {what}, bound {bound:.0e}")
    return error


def close_gradients(got, expected, bound, what):
    return close(got, expected, bound, what, GRADIENT_FLOOR)


def near(got, expected, bound, what):
    error = np.abs(np.asarray(got, np.float64) - np.asarray(expected)).max(initial=0)
    if not error <= bound:
        raise Failure(f"{what}: {got} instead of {expected}, off by {error:.2e}, bound {bound:.0e}")


class Erf(OpRun):
    """onnx.reference rounds to float32."""
    op_domain = ""

    def _run(self, x):
        return (np.vectorize(math.erf, otypes=[np.float64])(x), )


class Graph:
    """A small ONNX model, node by node."""

    def __init__(self, opset=20):
        self.nodes, self.weights, self.inputs, self.outputs, self.count = [], {}, [], [], 0
        self.opset = opset

    def weight(self, name, value, dtype=np.float32):
        self.weights[name] = np.asarray(value, dtype)
        return name

    def constant(self, value, dtype=np.int64):
        self.count += 1
        return self.weight(f"constant_{self.count}", value, dtype)

    def input(self, name, shape, dtype=np.float32):
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def op(self, kind, *inputs, output=None, outputs=1, **attributes):
        self.count += 1
        names = [output or f"{kind}_{self.count}"] + [f"{kind}_{self.count}_{i}" for i in range(1, outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=names[0], **attributes))
        return names[0] if outputs == 1 else names

    def reference(self, output, parameters):
        """onnx.reference on the graph in float64; `parameters` are further inputs."""
        double = lambda value: value.astype(np.float64) if value.dtype == np.float32 else value
        values = [helper.make_tensor_value_info(name, TensorProto.DOUBLE, self.weights[name].shape) for name in parameters]
        for value in self.inputs:
            copied = onnx.ValueInfoProto()
            copied.CopyFrom(value)
            if copied.type.tensor_type.elem_type == TensorProto.FLOAT:
                copied.type.tensor_type.elem_type = TensorProto.DOUBLE
            values.append(copied)
        constants = [numpy_helper.from_array(double(value), name) for name, value in self.weights.items()
                     if name not in parameters]
        graph = helper.make_graph(self.nodes, "test", values,
                                  [helper.make_tensor_value_info(output, TensorProto.DOUBLE, None)], constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=9)
        return ReferenceEvaluator(model, new_ops=[Erf])

    def save(self, path, *outputs, half=False):
        """`half`: the weights, inputs and outputs that are f32 become f16."""
        kind = TensorProto.FLOAT16 if half else TensorProto.FLOAT
        values = [helper.make_tensor_value_info(name, kind, None) for name in outputs]
        stored = {name: value.astype(np.float16) if half and value.dtype == np.float32 else value
                  for name, value in self.weights.items()}
        graph = helper.make_graph(self.nodes, "test", self.inputs, values,
                                  [numpy_helper.from_array(value, name) for name, value in stored.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=9)
        Path(path).write_bytes(model.SerializeToString())
        return path


def save_inputs(path, **arrays):
    np.savez(path, **arrays)
    return path

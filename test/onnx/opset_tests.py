# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators in the opsets in which their form changed, mtp-run against ONNX Runtime.

node_tests.py covers the newest form of each operator; here are the older ones
(axes as attributes, Softmax that flattens, ..), attribute variants, and inputs that
other tools got wrong in public bug reports.
"""

import argparse
import concurrent.futures
import os
import re
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from node_tests import difference, run_mtp

random = np.random.default_rng(3)
CASES = []


def f32(*shape):
    return random.standard_normal(shape).astype(np.float32)


def i64(*values):
    return np.array(values, dtype=np.int64)


def case(op, opset, inputs, known=None, outputs=1, expected=None, label="", **attributes):
    """`inputs` are fed, `known` are initializers by position (None: left out)."""
    known = known or {}
    CASES.append((f"{op}-{opset}" + (f"-{label}" if label else ""), op, opset, inputs, known, outputs, expected, attributes))


# Reductions: axes are an attribute before 13 (Sum) or 18 (others).
X = f32(2, 3, 4)
for kind in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSumExp"):
    op = "Reduce" + kind
    case(op, 11, [X], axes=[1, -1], keepdims=0)
    case(op, 11, [X], label="all")
    case(op, 13 if kind == "Sum" else 18, [X], {1: i64(0, -2)}, keepdims=1)
    case(op, 18, [X], {1: i64()}, label="noop", noop_with_empty_axes=1)
    case(op, 18, [X], label="absent", noop_with_empty_axes=1, keepdims=0)
case("ReduceSum", 12, [np.arange(6, dtype=np.int64).reshape(2, 3)], axes=[1], label="int64")
case("ReduceMean", 17, [X], axes=[-1], keepdims=1)

# Softmax flattens below 13, with axis 1 by default.
for opset in (11, 12, 13, 21):
    for op in ("Softmax", "LogSoftmax"):
        case(op, opset, [X], label="default")
        for axis in (0, 1, 2, -1, -2):
            case(op, opset, [X], label=f"axis{axis}", axis=axis)
case("Softmax", 13, [np.full((2, 5), -np.inf, np.float32)], label="all-hidden")
case("Softmax", 13, [np.full((2, 5), -1e30, np.float32)], label="all-negative")

# Squeeze, Unsqueeze: axes as attribute, then as input.
case("Squeeze", 11, [f32(1, 3, 1, 2)], axes=[0, -2])
case("Squeeze", 11, [f32(1, 3, 1, 2)], label="all")
case("Squeeze", 13, [f32(1, 3, 1, 2)], {1: i64(2)})
case("Unsqueeze", 11, [X], axes=[0, 4])
case("Unsqueeze", 13, [X], {1: i64(-1, 0)})

# Split: sizes as attribute, as input, as a count with an uneven last part.
case("Split", 11, [f32(6, 2)], outputs=2, split=[2, 4])
case("Split", 11, [f32(6, 2)], outputs=3, label="equal")
case("Split", 13, [f32(2, 7)], {1: i64(3, 0, 4)}, outputs=3, axis=1)
case("Split", 18, [f32(2, 7)], outputs=3, axis=-1, num_outputs=3)

# Slice: public reports.
for opset in (11, 13):
    big = np.iinfo(np.int64)
    case("Slice", opset, [f32(100)], {1: i64(0), 2: i64(big.max)}, label="max")
    case("Slice", opset, [f32(5)], {1: i64(-1), 2: i64(np.iinfo(np.int32).max), 3: i64(0), 4: i64(-1)}, label="empty",
         expected=lambda x: x[:0])  # clamped to the last element; ONNX Runtime reverses
    case("Slice", opset, [f32(5)], {1: i64(-1), 2: i64(big.min), 3: i64(0), 4: i64(-1)}, label="reversed")
    case("Slice", opset, [f32(5, 4)], {1: i64(0, 1), 2: i64(5, 9), 3: i64(0, 1), 4: i64(1000000000, 2)}, label="huge-step")
    case("Slice", opset, [X], {1: i64(-2), 2: i64(-1), 3: i64(-1)}, label="negative")

case("Gather", 11, [np.array([1, 2, 3, 4, 5], np.float32), np.array([-1, -3, 0])], label="negative-run-time")
case("Gather", 13, [np.array([1, 2, 3, 4, 5], np.float32)], {1: np.array([-1, -3, 0])}, label="negative-known")
case("Gather", 13, [X], {1: np.array(1)}, axis=1, label="scalar")
case("Gather", 13, [X, np.array([[1, 0], [3, 2]], np.int32)], axis=2, label="int32")
case("GatherElements", 13, [X, random.integers(-4, 4, (2, 3, 2))], axis=2)
case("GatherND", 12, [X, np.array([[[1], [0]], [[2], [-1]]])], batch_dims=1)
case("ScatterElements", 11, [X, np.array([[[0, 1, 2, 0], [2, 0, 1, 1]], [[1, 2, 0, 2], [0, 1, 2, 0]]]), f32(2, 2, 4)], axis=1)
case("ScatterElements", 18, [X, random.integers(0, 3, (2, 2, 4)), f32(2, 2, 4)], axis=1, reduction="add")
case("ScatterElements", 18, [X, random.integers(0, 3, (2, 2, 4)), f32(2, 2, 4)], axis=1, reduction="max")
case("ScatterND", 11, [f32(4, 3), np.array([[1], [3]]), f32(2, 3)])
case("ScatterND", 18, [f32(4, 3), np.array([[1], [1]]), f32(2, 3)], reduction="add")
case("ScatterND", 18, [f32(4, 3), np.array([[1], [1]]), f32(2, 3)], reduction="min")

C = f32(3, 4)
for exclusive in (0, 1):
    for reverse in (0, 1):
        case("CumSum", 11, [C], {1: np.array(1)}, exclusive=exclusive, reverse=reverse, label=f"{exclusive}{reverse}")
case("CumSum", 14, [C], {1: np.array(-2)}, label="axis-2")
case("CumSum", 14, [np.arange(8, dtype=np.int64).reshape(2, 4)], {1: np.array(1)}, label="int64")

case("Expand", 13, [f32(4, 1)], {1: i64(2, 1, 3)})
case("Tile", 13, [f32(2, 3)], {1: i64(2, 2)})
case("Reshape", 13, [X], {1: i64(0, -1)})
case("Reshape", 14, [f32(0, 3)], {1: i64(3, 0)}, allowzero=1)
case("Flatten", 13, [X], axis=2)
case("Flatten", 13, [X], axis=0, label="0")
case("Transpose", 13, [X], label="default")
case("Concat", 13, [X, f32(2, 1, 4)], axis=-2)
case("Concat", 13, [f32(2, 0, 4), X], axis=1, label="with-empty")
case("Pad", 11, [X], {1: i64(0, 1, 0, 2, 0, 1), 2: np.array(1.5, np.float32)})
case("Pad", 13, [X], {1: i64(0, 0, -1, 1, 0, 0)}, label="negative")
for mode in ("reflect", "edge"):
    case("Pad", 13, [X], {1: i64(0, 1, 2, 1, 2, 3)}, mode=mode, label=mode)
case("Pad", 18, [X], {1: i64(1, 2), 2: np.array(0, np.float32), 3: i64(-1)}, label="axes")
case("OneHot", 11, [np.array([[1, -1], [0, 2]])], {1: np.array(3), 2: np.array([2, 5], np.float32)}, axis=1)
case("TopK", 11, [f32(3, 9)], {1: i64(4)}, outputs=2)
case("TopK", 11, [f32(9, 3)], {1: i64(4)}, outputs=2, axis=0, largest=0, label="smallest")
case("ArgMax", 11, [np.array([[1, 3, 3], [2, 2, 0]], np.float32)], axis=1, keepdims=0)
case("ArgMax", 13, [np.array([[1, 3, 3], [2, 2, 0]], np.float32)], axis=1, select_last_index=1)
case("ArgMin", 13, [np.array([[1, 3, 3], [2, 2, 0]], np.float32)], axis=0)
case("Trilu", 14, [f32(2, 4, 3)], {1: np.array(1)}, upper=1)
case("Trilu", 14, [f32(4, 5)], {1: np.array(-1)}, upper=0, label="lower")
case("Clip", 11, [X], {1: np.array(-0.5, np.float32)})
case("Clip", 13, [X], {1: None, 2: np.array(0.5, np.float32)}, label="max-only")
case("Dropout", 11, [X], ratio=0.3)
case("Dropout", 13, [X], {1: np.array(0.3, np.float32)}, outputs=2)
case("Mod", 13, [np.array([-5, 5, -7]), np.array([3, -3, 2])])
case("Mod", 13, [np.array([-5, 5, -7], np.float32), np.array([3, -3, 2], np.float32)], fmod=1, label="fmod")
case("Div", 13, [np.array([-7, 7, 5]), np.array([2, 2, -3])], label="int64")
case("Pow", 13, [np.abs(X), f32(4)], label="bcast")
case("Pow", 13, [X, np.array([2], np.int64)], label="int-exponent")
case("Sub", 14, [f32(2, 1, 3), f32(4, 1)])
case("Mean", 13, [X, f32(4), f32(3, 1)])
case("Max", 13, [np.array([1, np.nan, 3], np.float32), np.array([2, 1, np.nan], np.float32)], label="nan")
case("Where", 16, [np.array([[True], [False]]), f32(2, 3), f32(3)])
case("Cast", 13, [np.array([np.nan, 2, 0.5, -0.0, 0], np.float32)], to=TensorProto.BOOL, label="bool")
case("Cast", 13, [np.array([-1.9, 1.9, 300.5], np.float32)], to=TensorProto.INT64, label="int64")
case("Cast", 13, [np.array([True, False])], to=TensorProto.FLOAT, label="from-bool")
case("Cast", 19, [f32(5)], to=TensorProto.DOUBLE, saturate=0, label="saturate",
     expected=lambda x: x.astype("f8"))
case("IsInf", 10 + 1, [np.array([1, np.inf, -np.inf, np.nan], np.float32)], detect_negative=0)
case("Round", 11, [np.array([0.5, 1.5, -2.5, 2.4], np.float32)])
case("Erf", 13, [f32(20)])
case("Gelu", 20, [f32(20)], approximate="tanh")
case("Equal", 11, [np.array([True, False]), np.array([True, True])], label="bool")

case("MatMul", 13, [f32(2, 1, 3, 4), f32(5, 4, 2)], label="broadcast")
case("MatMul", 13, [f32(4), f32(2, 4, 3)], label="vector-left")
case("MatMul", 13, [f32(2, 3, 4), f32(4)], label="vector-right")
case("MatMul", 13, [f32(4), f32(4)], label="vectors")
case("Gemm", 11, [f32(4, 3), f32(5, 4), f32(5)], transA=1, transB=1, alpha=0.5, beta=2.0)
case("Gemm", 13, [f32(35, 34), f32(34, 16) * 10], label="35x34x16")
case("Gemm", 13, [f32(3, 4), f32(4, 2), f32(3, 1)], label="column")
for equation, shapes in (("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]), ("ij,jk", [(2, 3), (3, 4)]),
                         ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]), ("...ij,...jk->...ik", [(2, 1, 3, 4), (1, 5, 4, 2)]),
                         ("ij->ji", [(2, 3)]), ("ij->j", [(2, 3)]), ("i,j->ij", [(2,), (3,)]), ("ij,ij->", [(2, 3)] * 2),
                         ("bid,bjd,bkd->bijk", [(2, 3, 4)] * 3), ("bhwc,hkc->bhwk", [(2, 3, 4, 5), (3, 6, 5)])):
    case("Einsum", 12, [f32(*s) for s in shapes], equation=equation, label=equation.replace("->", "=").replace(",", "+"))
case("Conv", 11, [f32(1, 3, 8, 8), f32(4, 3, 4, 4), f32(4)], strides=[4, 4], kernel_shape=[4, 4], label="patches")
case("Conv", 11, [f32(2, 4, 9), f32(6, 2, 3), f32(6)], group=2, pads=[1, 1], strides=[2], label="1d-groups")
case("Conv", 11, [f32(1, 2, 7, 7), f32(3, 2, 3, 3)], strides=[2, 2], auto_pad="SAME_UPPER", label="same-upper")
case("Conv", 11, [f32(1, 2, 7, 6), f32(3, 2, 3, 2)], auto_pad="SAME_LOWER", strides=[2, 2], label="same-lower")
case("LayerNormalization", 17, [f32(2, 3, 8), f32(8), f32(8)], epsilon=1e-6)
case("LayerNormalization", 17, [f32(2, 3, 8), f32(8)], label="no-bias")
case("LayerNormalization", 17, [f32(2, 3, 8), f32(3, 8), f32(3, 8)], axis=1, outputs=3, label="three-outputs")
case("LpNormalization", 11, [np.array([[1, 2, 3], [2, 4, 8]], np.float32)], axis=1, p=2)
case("Attention", 23, [f32(1, 2, 1, 8), f32(1, 2, 5, 8), f32(1, 2, 5, 8)], is_causal=1, label="one-query",
     expected=lambda q, k, v: v[:, :, :1])
case("Range", 11, [], {0: np.array(2), 1: np.array(-9), 2: np.array(-3)}, label="down")
case("ConstantOfShape", 11, [], {0: i64(2, 3)}, label="default")


def run_case(mtp_run, item):
    name, op, opset, inputs, known, outputs, expected, attributes = item
    names = {i: f"k{i}" for i, value in known.items() if value is not None}
    fed = iter(range(len(inputs)))
    count = len(inputs) + len(known)
    operands, feeds = [], {}
    for position in range(count):
        if position in known:
            operands.append(names.get(position, ""))
        else:
            index = next(fed)
            operands.append(f"x{index}")
            feeds[f"x{index}"] = np.asarray(inputs[index])
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, operands, results, name=f"the_{op}", **attributes)
    graph = helper.make_graph(
        [node], "one",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in feeds.items()],
        [helper.make_empty_tensor_value_info(n) for n in results],
        [numpy_helper.from_array(np.asarray(known[i]), n) for i, n in names.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    if callable(expected):
        wanted = [expected(*feeds.values())]
    else:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        typed = onnx.shape_inference.infer_shapes(model)
        try:
            wanted = onnxruntime.InferenceSession(typed.SerializeToString(), options).run(results, feeds)
        except Exception as problem:
            return name, f"no reference: {problem}"
    with tempfile.TemporaryDirectory() as folder:
        code, kind, message, actual = run_mtp(mtp_run, model, feeds, folder)
    if code:
        return name, f"exit {code} ({kind}): {message}"
    for result, value in zip(results, wanted):
        wrong = difference(actual.get(result), value, 1e-4, 2e-5)
        if wrong:
            return name, f"output '{result}' {wrong}"
    return name, ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mtp_run")
    parser.add_argument("--filter", default="", help="a regular expression for names")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    cases = [item for item in CASES if re.search(args.filter, item[0])]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for name, wrong in pool.map(lambda item: run_case(args.mtp_run, item), cases):
            if wrong:
                failed += 1
                print(f"FAILED {name}: {' '.join(wrong.split())[:400]}", flush=True)
    print(f"{len(cases)} operators in older forms: {len(cases) - failed} ok, {failed} FAILED")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

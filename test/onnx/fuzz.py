# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Damages real models and compiles them: exit 0 or 1 with one message, never a signal,
never "internal error".

Bytes are flipped and cut off; and, what gets deeper, the graph is changed: operators
swapped for others, operands exchanged, left out or repeated, attributes changed or
dropped, shapes and types of inputs and initializers changed.
"""

import argparse
import pathlib
import random
import subprocess
import sys
import tempfile

import onnx
from onnx import helper, numpy_helper

OPS = None


def damage_bytes(data, rng):
    data = bytearray(data)
    if rng.random() < 0.3:
        return bytes(data[: rng.randrange(1, len(data))])
    span = len(data) if rng.random() < 0.3 else min(len(data), 6000)
    for _ in range(rng.randrange(1, 5)):
        data[rng.randrange(span)] = rng.randrange(256)
    return bytes(data)


def odd_number(rng):
    return rng.choice([0, 1, -1, 2, 3, -2, 7, 64, 1 << 31, -(1 << 31), (1 << 63) - 1, -(1 << 63)])


def damage_attribute(node, rng):
    if not node.attribute:
        node.attribute.append(helper.make_attribute("axis", odd_number(rng)))
        return
    attribute = rng.choice(node.attribute)
    if attribute.type == onnx.AttributeProto.INT:
        attribute.i = odd_number(rng)
    elif attribute.type == onnx.AttributeProto.INTS:
        attribute.ints.append(odd_number(rng)) if rng.random() < 0.5 or not attribute.ints else attribute.ints.pop()
    elif attribute.type == onnx.AttributeProto.FLOAT:
        attribute.f = rng.choice([0.0, -1.0, float("nan"), float("inf"), 1e30])
    else:
        node.attribute.remove(attribute)


def damage_graph(model, rng):
    graph = model.graph
    for _ in range(rng.randrange(1, 4)):
        node = rng.choice(graph.node)
        kind = rng.randrange(9)
        if kind == 0:
            node.op_type = rng.choice(OPS)
        elif kind == 1 and node.input:
            names = [name for other in graph.node for name in other.output] + [t.name for t in graph.initializer]
            node.input[rng.randrange(len(node.input))] = rng.choice(names + [""])
        elif kind == 2 and node.input:
            node.input.pop() if rng.random() < 0.5 else node.input.append(node.input[0])
        elif kind == 3:
            damage_attribute(node, rng)
        elif kind == 4 and graph.initializer:
            tensor = rng.choice(graph.initializer)
            if len(tensor.dims) > 1 and rng.random() < 0.7:
                first, last = tensor.dims[0], tensor.dims[-1]
                tensor.dims[0], tensor.dims[-1] = last, first
            else:
                tensor.dims.append(1)
        elif kind == 5:
            info = rng.choice(graph.input).type.tensor_type
            if info.shape.dim:
                info.shape.dim[rng.randrange(len(info.shape.dim))].dim_value = abs(odd_number(rng)) % (1 << 62)
        elif kind == 6:
            rng.choice(graph.input).type.tensor_type.elem_type = rng.choice([1, 6, 7, 9, 10, 11, 16, 8])
        elif kind == 7:
            small = [t for t in graph.initializer if t.data_type == 7 and len(t.dims) <= 1 and not t.external_data]
            if small:
                tensor = rng.choice(small)
                values = numpy_helper.to_array(tensor).copy()
                if values.size:
                    values.reshape(-1)[rng.randrange(values.size)] = odd_number(rng)
                    tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
        elif kind == 8:
            model.opset_import[0].version = rng.randrange(11, 25)
    return model.SerializeToString()


def main():
    global OPS
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mtp_opt", help="the program that reads: mtp-opt, or mtp-run to compile and run too")
    parser.add_argument("models", type=pathlib.Path, help="a folder of folders with model.onnx")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the models that failed")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    sources = []
    for path in sorted(args.models.glob("*/model.onnx")):
        model = onnx.load(path)  # with external data inside
        for tensor in model.graph.initializer:
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")
        sources.append((path.parent.name, model.SerializeToString()))
    OPS = sorted({node.op_type for _, data in sources for node in onnx.ModelProto.FromString(data).graph.node})
    is_run = pathlib.Path(args.mtp_opt).name == "mtp-run"
    failed, counts = 0, {}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        for number in range(args.rounds):
            name, data = rng.choice(sources)
            data = damage_bytes(data, rng) if rng.random() < 0.25 else damage_graph(onnx.ModelProto.FromString(data), rng)
            path.write_bytes(data)
            command = [args.mtp_opt, str(path)]
            command += ["--random-inputs", "--no-cache", "--quiet"] if is_run else ["-o", "/dev/null"]
            try:
                result = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60, check=False)
                code, text = result.returncode, result.stderr.strip()
            except subprocess.TimeoutExpired:
                code, text = "timeout", ""
            counts[code] = counts.get(code, 0) + 1
            if code not in (0, 1) or (code == 1 and not text) or "internal" in text:
                failed += 1
                print(f"FAILED round {number} ({name}): {code}: {' '.join(text.split())[:300]}", flush=True)
                if args.keep:
                    args.keep.mkdir(parents=True, exist_ok=True)
                    (args.keep / f"{args.seed}-{number}.onnx").write_bytes(data)
    print(f"{args.rounds} damaged models: exit codes {counts}, {failed} FAILED")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Write transformers of any size as ONNX, without PyTorch, with random weights.

    synthetic.py --out bert --kind bert --layers 12 --hidden 768 --heads 12 --seq 128

`bert` is an encoder (bidirectional, norm after the residual, GELU), `gpt2` a
decoder (causal, norm before it, tied head). Both take `input_ids`
[batch, seq]; bert gives `hidden`, gpt2 `logits`. Weights lie in model.onnx.data.
The forms are those of the TorchScript exporter: MatMul and Add, scores divided
and masked, GELU from Erf.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


@dataclass
class Shape:
    kind: str = "bert"
    layers: int = 12
    hidden: int = 768
    heads: int = 12
    feed_forward: int = 3072
    vocab: int = 30522
    batch: int = 1
    seq: int = 128


class Graph:
    def __init__(self, shape):
        self.shape, self.rng = shape, np.random.default_rng(0)
        self.nodes, self.weights, self.count = [], {}, 0

    def weight(self, name, *dims, mean=0.0):
        self.weights[name] = (self.rng.standard_normal(dims, dtype=np.float32) * np.float32(0.02)
                              + np.float32(mean))
        return name

    def constant(self, value, dtype):
        name = f"constant_{self.count}"
        self.count += 1
        self.nodes.append(helper.make_node("Constant", [], [name], name=name,
                                           value=numpy_helper.from_array(np.array(value, dtype))))
        return name

    def op(self, kind, *inputs, **attributes):
        name = f"{kind}_{self.count}"
        self.count += 1
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def linear(self, x, name, rows, columns):
        product = self.op("MatMul", x, self.weight(f"{name}.weight", rows, columns))
        return self.op("Add", product, self.weight(f"{name}.bias", columns))

    def norm(self, x, name):
        hidden = self.shape.hidden
        return self.op("LayerNormalization", x, self.weight(f"{name}.weight", hidden, mean=1.0),
                       self.weight(f"{name}.bias", hidden), axis=-1, epsilon=1e-5)

    def heads(self, x):
        s = self.shape
        split = self.op("Reshape", x, self.constant([s.batch, s.seq, s.heads, s.hidden // s.heads], np.int64))
        return self.op("Transpose", split, perm=[0, 2, 1, 3])

    def attention(self, x, name):
        s = self.shape
        q, k, v = (self.heads(self.linear(x, f"{name}.{part}", s.hidden, s.hidden)) for part in "qkv")
        scores = self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self.op("Div", scores, self.constant((s.hidden // s.heads) ** 0.5, np.float32))
        if s.kind == "gpt2":
            position = self.constant(np.arange(s.seq), np.int64)
            row = self.op("Unsqueeze", position, self.constant([1], np.int64))
            visible = self.op("LessOrEqual", position, row)
            scores = self.op("Where", visible, scores,
                             self.constant(np.finfo(np.float32).min, np.float32))
        context = self.op("MatMul", self.op("Softmax", scores, axis=-1), v)
        context = self.op("Transpose", context, perm=[0, 2, 1, 3])
        context = self.op("Reshape", context, self.constant([s.batch, s.seq, s.hidden], np.int64))
        return self.linear(context, f"{name}.o", s.hidden, s.hidden)

    def gelu(self, x):
        erf = self.op("Erf", self.op("Div", x, self.constant(2 ** 0.5, np.float32)))
        twice = self.op("Mul", x, self.op("Add", erf, self.constant(1, np.float32)))
        return self.op("Mul", twice, self.constant(0.5, np.float32))

    def mlp(self, x, name):
        s = self.shape
        return self.linear(self.gelu(self.linear(x, f"{name}.up", s.hidden, s.feed_forward)),
                           f"{name}.down", s.feed_forward, s.hidden)

    def model(self):
        s = self.shape
        table = self.weight("embedding.weight", s.vocab, s.hidden)
        x = self.op("Gather", table, "input_ids")
        x = self.op("Add", x, self.weight("position.weight", s.seq, s.hidden))
        for i in range(s.layers):
            layer = f"layers.{i}"
            if s.kind == "bert":
                x = self.norm(self.op("Add", x, self.attention(x, f"{layer}.attention")), f"{layer}.norm1")
                x = self.norm(self.op("Add", x, self.mlp(x, f"{layer}.mlp")), f"{layer}.norm2")
            else:
                x = self.op("Add", x, self.attention(self.norm(x, f"{layer}.norm1"), f"{layer}.attention"))
                x = self.op("Add", x, self.mlp(self.norm(x, f"{layer}.norm2"), f"{layer}.mlp"))
        if s.kind == "gpt2":
            x = self.norm(x, "norm")
            output, last = "logits", s.vocab
            self.nodes.append(helper.make_node("MatMul", [x, self.op("Transpose", table, perm=[1, 0])], [output],
                                               name="head"))
        else:
            output, last = "hidden", s.hidden
            self.nodes.append(helper.make_node("Identity", [x], [output], name="last"))
        graph = helper.make_graph(
            self.nodes, s.kind,
            [helper.make_tensor_value_info("input_ids", TensorProto.INT64, [s.batch, s.seq])],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, [s.batch, s.seq, last])],
            [numpy_helper.from_array(array, name) for name, array in self.weights.items()])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def write(folder, shape):
    """Writes model.onnx, model.onnx.data and inputs.npz; returns the weights."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx.data").unlink(missing_ok=True)
    graph = Graph(shape)
    onnx.save(graph.model(), folder / "model.onnx", save_as_external_data=True,
              all_tensors_to_one_file=True, location="model.onnx.data", size_threshold=1024)
    ids = np.random.default_rng(1).integers(0, shape.vocab, (shape.batch, shape.seq))
    np.savez(folder / "inputs.npz", input_ids=ids.astype(np.int64))
    return graph.weights


def add_arguments(parser):
    for name, value in Shape().__dict__.items():
        flag = "--" + name.replace("_", "-")
        if name == "kind":
            parser.add_argument(flag, choices=["bert", "gpt2"], default=value)
        else:
            parser.add_argument(flag, type=int, default=value)


def shape_of(options):
    return Shape(**{name: getattr(options, name) for name in Shape().__dict__})


def main():
    parser = argparse.ArgumentParser(description="Write a transformer as ONNX.")
    parser.add_argument("--out", required=True)
    add_arguments(parser)
    options = parser.parse_args()
    write(options.out, shape_of(options))


if __name__ == "__main__":
    main()

# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tests of the Megatron-LM paper's code (megatron/mpu/tests, 2019) with their
sizes, in f32: n ranks against one rank or a closed form. Errors are relative to the
largest value."""

import numpy as np
from training import Graph, close, near, save_inputs

RANKS = (2, 4, 8)


def relative(got, wanted, bound, what):
    near(np.asarray(got) / np.abs(wanted).max(), np.asarray(wanted) / np.abs(wanted).max(), bound, what)


def linear(runner, folder):
    """Column and row parallel: batch 7, in 13 a rank, out 17 a rank, L = sum(Y W)."""
    rng = np.random.default_rng(4)
    for ranks in RANKS:
        sizes, out = 13 * ranks, 17 * ranks
        x, a, b, w = (rng.normal(size=s).astype(np.float32) for s in ((7, sizes), (sizes, out), (out, ), (7, out)))
        graph = Graph()
        y = graph.op("Add", graph.op("MatMul", graph.input("x", [7, sizes]), graph.weight("a", a)), graph.weight("b", b))
        graph.op("ReduceSum", graph.op("Mul", y, graph.input("weights", [7, out])), output="loss", keepdims=0)
        model = graph.save(folder / f"linear-{ranks}.onnx", "loss")
        inputs = [save_inputs(folder / f"linear-{ranks}.npz", x=x, weights=w)]
        x, a, w = (value.astype(np.float64) for value in (x, a, w))
        for pin in ("a=tp = S(1)", "a=tp = S(0)"):
            got = runner.train(model, inputs, "output:loss", ["--mesh", f"tp={ranks}", "--pin", pin], input_gradients=True)
            close(got.gradients, {"a": x.T @ w, "b": w.sum(0)}, 2e-6, f"the closed form on {ranks} ranks, {pin}")
            close({"x": got.input_gradients["x"]}, {"x": w @ a.T}, 2e-6, f"the closed form on {ranks} ranks, {pin}")


def cross_entropy(runner, folder):
    """Batch 13, sequence 17, vocabulary 11 a rank, logits times 1000."""
    rng = np.random.default_rng(5)
    for ranks in RANKS:
        classes = 11 * ranks
        logits = (1000 * rng.normal(size=(13, 17, classes))).astype(np.float32)
        labels = rng.integers(0, classes, (13, 17))
        graph = Graph()
        graph.op("Add", graph.input("x", [13, 17, classes]), graph.weight("w", np.zeros(classes)), output="logits")
        model = graph.save(folder / f"entropy-{ranks}.onnx", "logits")
        inputs = [save_inputs(folder / f"entropy-{ranks}.npz", x=logits, labels=labels)]
        x = logits.astype(np.float64)
        shifted = x - x.max(-1, keepdims=True)
        total = np.exp(shifted).sum(-1, keepdims=True)
        picked = np.take_along_axis(shifted, labels[..., None], -1)
        gradient = (np.exp(shifted) / total - np.eye(classes)[labels]) / labels.size
        for mode in ([], ["--poison"]):
            got = runner.train(model, inputs, "cross_entropy:logits=logits,labels=labels",
                               ["--mesh", f"tp={ranks}", "--objective", "time", *mode], input_gradients=True)
            relative(got.loss, [(np.log(total) - picked).mean()], 2e-6, f"loss on {ranks} ranks")
            close(got.input_gradients, {"x": gradient}, 2e-6, f"F.cross_entropy on {ranks} ranks")


def embedding(runner, folder):
    """Batch 17, sequence 23, vocabulary 48, hidden 16: exact."""
    rng = np.random.default_rng(6)
    ids = rng.integers(0, 48, (17, 23))
    weights = rng.integers(-8, 9, (17, 23, 16)).astype(np.float32)
    graph = Graph()
    y = graph.op("Gather", graph.weight("table", rng.integers(-8, 9, (48, 16))), graph.input("ids", [17, 23], np.int64))
    graph.op("ReduceSum", graph.op("Mul", y, graph.input("weights", [17, 23, 16])), output="loss", keepdims=0)
    model = graph.save(folder / "embedding.onnx", "loss")
    inputs = [save_inputs(folder / "embedding.npz", ids=ids, weights=weights)]
    gradient = np.zeros((48, 16))
    np.add.at(gradient, ids, weights)
    for ranks in RANKS:
        got = runner.train(model, inputs, "output:loss", ["--mesh", f"tp={ranks}", "--pin", "table=tp = S(0)"])
        close(got.gradients, {"table": gradient}, 0, f"nn.Embedding on {ranks} ranks")


def transformer(graph, x, rng, hidden, heads, size, layer):
    """Self-attention, and around it the rest of a layer."""
    draw = lambda *shape: rng.normal(0, 0.1, shape)
    linear = lambda value, name, columns, rows=hidden: graph.op(
        "Add", graph.op("MatMul", value, graph.weight(f"{name}.w", draw(rows, columns))), graph.weight(f"{name}.b", draw(columns)))
    norm = lambda value, name: graph.op("LayerNormalization", value, graph.weight(f"{name}.g", draw(hidden) + 1),
                                        graph.weight(f"{name}.c", draw(hidden)))
    inner = norm(x, "norm1") if layer else x
    split = lambda name: graph.op("Transpose", graph.op("Reshape", linear(inner, name, hidden),
                                                        graph.constant([5, 13, heads, size])), perm=[0, 2, 1, 3])
    y = graph.op("Attention", split("q"), split("k"), split("v"), is_causal=1)
    y = graph.op("Reshape", graph.op("Transpose", y, perm=[0, 2, 1, 3]), graph.constant([5, 13, hidden]))
    y = linear(y, "o", hidden)
    if not layer:
        return y
    x = graph.op("Add", x, y)
    y = graph.op("Gelu", linear(norm(x, "norm2"), "up", 4 * hidden), approximate="tanh")
    return graph.op("Add", x, linear(y, "down", hidden, 4 * hidden))


def attention_and_layer(runner, folder):
    """Three heads a rank of size 7, batch 5, sequence 13."""
    for layer, bound in ((False, 5e-6), (True, 5e-5)):
        for ranks in (2, 4):
            rng = np.random.default_rng(7)
            heads, size = 3 * ranks, 7
            hidden = heads * size
            graph = Graph(opset=23)
            y = transformer(graph, graph.input("x", [5, 13, hidden]), rng, hidden, heads, size, layer)
            graph.op("ReduceSum", graph.op("Mul", y, graph.input("weights", [5, 13, hidden])), output="loss", keepdims=0)
            name = f"{'layer' if layer else 'attention'}-{ranks}"
            model = graph.save(folder / f"{name}.onnx", "loss")
            shape = (5, 13, hidden)
            inputs = [save_inputs(folder / f"{name}.npz", x=rng.normal(size=shape).astype(np.float32),
                                  weights=rng.normal(size=shape).astype(np.float32))]
            one = runner.train(model, inputs, "output:loss", ["--precision", "f64"], input_gradients=True)
            got = runner.train(model, inputs, "output:loss", ["--mesh", f"tp={ranks}"], input_gradients=True)
            relative(got.loss, one.loss, bound, f"loss of {name}")
            for result in (one, got):
                del result.gradients["k.b"]  # zero up to rounding: it shifts all scores of a query
            close(got.gradients, one.gradients, bound, f"one rank in {name}", 1e-3)
            close({"x": got.input_gradients["x"]}, {"x": one.input_gradients["x"]}, bound, f"one rank in {name}")


CASES = [linear, cross_entropy, embedding, attention_and_layer]

# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What went wrong elsewhere: public bug reports on gradients, norms, ties, dropout of
tensor parallel training, each as a small model with its right value. Every case
takes a Runner and a folder and raises Failure."""

import math

import numpy as np
from training import Failure, Graph, close, close_gradients, near, save_inputs

F64 = ["--precision", "f64"]


def on(mesh, *more):
    return ["--mesh", mesh, *F64, *more]


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def logits_model(folder, logits, labels, name="logits"):
    """The identity times a weight that holds the logits."""
    rows = logits.shape[0]
    graph = Graph()
    x = graph.input("x", [rows, rows])
    graph.op("MatMul", x, graph.weight("w", logits), output="logits")
    model = graph.save(folder / f"{name}.onnx", "logits")
    inputs = save_inputs(folder / f"{name}.npz", x=np.eye(rows, dtype=np.float32), labels=labels)
    return model, [inputs]


def label_smoothing_uses_the_whole_vocabulary(runner, folder):
    """Megatron-LM #737, #7464: smoothing with the size and mean of the rank's part.
    Megatron's smoothing a is torch's a K / (K - 1) for K classes."""
    logits = np.array([[(3 * i + 5 * j) % 7 - 3 for j in range(8)] for i in range(6)], np.float64)
    labels = np.array([(2 * i + 1) % 8 for i in range(6)])
    model, inputs = logits_model(folder, logits, labels)
    for alpha, value in ((0.1 * 8 / 7, 3.437165), (0.1, 3.434487), (0.0, 3.415737)):
        target = (1 - alpha) * np.eye(8)[labels] + alpha / 8
        for mesh in ("tp=1", "tp=2", "tp=3", "tp=4", "tp=8"):
            loss = f"cross_entropy:logits=logits,labels=labels,label_smoothing={alpha}"
            got = runner.train(model, inputs, loss, on(mesh))
            near(got.loss, [value], 1e-6, f"loss with smoothing {alpha} on {mesh}")
            close(got.gradients, {"w": (softmax(logits) - target) / 6}, 1e-13, "softmax - target")
    model, inputs = logits_model(folder, 1000 * logits, labels, "large")
    for mesh in ("tp=1", "tp=2"):
        got = runner.train(model, inputs, "cross_entropy:logits=logits,labels=labels,label_smoothing=0.1", on(mesh))
        if not np.isfinite(got.loss).all() or not np.isfinite(got.gradients["w"]).all():
            raise Failure(f"logits of 3000 on {mesh}: loss {got.loss}")


def gathered_logits_are_not_summed_twice(runner, folder):
    """Megatron-LM #7452: whole logits into the vocabulary-parallel loss: + log(ranks)."""
    logits = np.array([[(3 * i + 5 * j) % 7 - 3 for j in range(8)] for i in range(6)], np.float64)
    labels = np.array([(2 * i + 1) % 8 for i in range(6)])
    model, inputs = logits_model(folder, logits, labels)
    for mesh, pin in (("tp=2", "w="), ("tp=8", "w="), ("tp=2", "w=tp = S(0)")):
        got = runner.train(model, inputs, "cross_entropy:logits=logits,labels=labels", on(mesh, "--pin", pin))
        near(got.loss, [3.415737], 1e-6, f"loss on {mesh} with {pin}")


def padded_vocabulary_is_masked(runner, folder):
    """Megatron-LM #1754: padding of the vocabulary takes part in the softmax."""
    classes = 50257
    graph = Graph()
    x = graph.input("x", [2, 4])
    graph.op("MatMul", x, graph.weight("w", np.zeros((4, classes))), output="logits")
    model = graph.save(folder / "vocabulary.onnx", "logits")
    labels = np.array([3, classes - 1])
    x = np.array([[1, 2, 3, 4], [4, 3, 2, 1]], np.float32)
    inputs = [save_inputs(folder / "vocabulary.npz", x=x, labels=labels)]
    gradient = x.T.astype(np.float64) @ (np.full((2, classes), 1 / classes) - (labels[:, None] == np.arange(classes))) / 2
    for mesh in ("tp=1", "tp=2", "tp=4", "tp=8"):
        for mode in ([], ["--poison"]):
            got = runner.train(model, inputs, "cross_entropy:logits=logits,labels=labels", on(mesh, *mode))
            near(got.loss, [math.log(classes)], 1e-9, f"loss on {mesh} {mode}")
            close(got.gradients, {"w": gradient}, 1e-12, f"the closed form on {mesh} {mode}")


def frozen_weight_passes_the_input_gradient(runner, folder):
    """Megatron-LM 5fffdfc7: no all-reduce of dX where the weight is frozen."""
    graph = Graph()
    x = graph.op("Add", graph.input("x", [8, 8]), graph.weight("b", np.zeros(8)))
    y = graph.op("MatMul", x, graph.weight("w", np.ones((8, 8))))
    graph.op("ReduceSum", y, output="loss", keepdims=0)
    model = graph.save(folder / "frozen.onnx", "loss")
    inputs = [save_inputs(folder / "frozen.npz", x=np.eye(8, dtype=np.float32))]
    for mesh in ("tp=1", "tp=8", "dp=2,tp=4"):
        got = runner.train(model, inputs, "output:loss", on(mesh, "--freeze", "w"), input_gradients=True)
        close(got.input_gradients, {"x": np.full((8, 8), 8.0)}, 0, f"8 on {mesh}")
        close(got.gradients, {"b": np.full(8, 64.0)}, 0, f"64 on {mesh}")


def shared_head_norm_sums_over_ranks(runner, folder):
    """Megatron-LM #816: the scale of a head norm sees only the rank's heads."""
    rng = np.random.default_rng(0)
    graph = Graph()
    x = graph.input("x", [2, 5, 16])
    q = graph.op("MatMul", x, graph.weight("w", rng.normal(size=(16, 32))))
    q = graph.op("Reshape", q, graph.constant([2, 5, 4, 8]))
    q = graph.op("LayerNormalization", q, graph.weight("g", rng.normal(1, 0.1, 8)), graph.weight("c", rng.normal(size=8)))
    q = graph.op("Reshape", q, graph.constant([2, 5, 32]))
    graph.op("MatMul", q, graph.weight("v", rng.normal(size=(32, 16))), output="y")
    model = graph.save(folder / "head-norm.onnx", "y")
    inputs = [save_inputs(folder / "head-norm.npz", x=rng.normal(size=(2, 5, 16)).astype(np.float32),
                          t=rng.normal(size=(2, 5, 16)).astype(np.float32))]
    flags = ["--steps", "10", "--lr", "0.01"]
    one = runner.train(model, inputs, "mse:prediction=y,target=t", on("tp=1", *flags), parameters=True)
    for mesh in ("tp=2", "tp=4", "dp=2,tp=2"):
        got = runner.train(model, inputs, "mse:prediction=y,target=t", on(mesh, *flags), parameters=True)
        close_gradients(got.gradients, one.gradients, 1e-12, f"one rank on {mesh}")
        close(got.parameters, one.parameters, 1e-10, f"one rank after 10 steps on {mesh}")


def norms_on_token_shards_sum_over_ranks(runner, folder):
    """Megatron-LM #1446, #443, TransformerEngine #435: scales of norms under sequence
    parallelism, whose gradients are parts on each rank."""
    rng = np.random.default_rng(9)
    graph = Graph()
    x = graph.op("Gather", graph.weight("e", rng.normal(size=(11, 16))), graph.input("ids", [2, 8], np.int64))
    for layer in "12":
        y = graph.op("LayerNormalization", x, graph.weight(f"g{layer}", rng.normal(1, 0.1, 16)),
                     graph.weight(f"c{layer}", rng.normal(size=16)))
        y = graph.op("Tanh", graph.op("MatMul", y, graph.weight(f"u{layer}", rng.normal(size=(16, 32)))))
        x = graph.op("Add", x, graph.op("MatMul", y, graph.weight(f"d{layer}", rng.normal(size=(32, 16)))))
    graph.op("LayerNormalization", x, graph.weight("g", np.ones(16)), graph.weight("c", np.zeros(16)), output="y")
    model = graph.save(folder / "tokens.onnx", "y")
    inputs = [save_inputs(folder / "tokens.npz", ids=rng.integers(0, 11, (2, 8)),
                          t=rng.normal(size=(2, 8, 16)).astype(np.float32))]
    one = runner.train(model, inputs, "mse:prediction=y,target=t", on("tp=1", "--steps", "5"), parameters=True)
    for mesh in ("tp=2", "tp=4", "tp=3", "dp=2,tp=2"):
        got = runner.train(model, inputs, "mse:prediction=y,target=t", on(mesh, "--steps", "5", "--sequence-parallel"),
                           parameters=True)
        if not {"all_gather", "reduce_scatter"} <= {site["kind"] for site in got.report["collectives"]}:
            raise Failure(f"tokens are not split on {mesh}")
        close_gradients(got.gradients, one.gradients, 1e-12, f"one rank on {mesh}")
        close(got.parameters, one.parameters, 1e-10, f"one rank after 5 steps on {mesh}")


def norm_counts_each_element_once(runner, folder):
    """DeepSpeed #5411 and others: cut gradients dropped, whole ones counted often."""
    graph = Graph()
    x = graph.input("x", [1, 4])
    y = graph.op("MatMul", x, graph.weight("w", np.zeros((4, 4))))
    y = graph.op("Add", y, graph.weight("b", np.zeros(4)))
    graph.op("ReduceSum", y, output="loss", keepdims=0)
    model = graph.save(folder / "norm.onnx", "loss")
    inputs = [save_inputs(folder / "norm.npz", x=np.ones((1, 4), np.float32))]
    for flags in (on("tp=1"), on("tp=2"), on("tp=3"), on("dp=2,tp=2"), on("dp=2,tp=2", "--zero", "1"),
                  on("dp=2,tp=2", "--zero", "2"), on("dp=2,tp=2", "--zero", "3"), on("dp=3,tp=2", "--zero", "3"),
                  on("tp=2", "--pin", "w=", "--pin", "b="), on("tp=3", "--pin", "w=tp = S(0)", "--poison")):
        got = runner.train(model, inputs, "output:loss", flags)
        near(got.norm, [math.sqrt(20)], 1e-12, f"norm with {flags}")


def norm_counts_experts_once(runner, folder):
    """Megatron-LM #5916, #6099: experts are missing from the norm, or counted by every rank."""
    graph = Graph()
    y = graph.op("Add", graph.input("x", [1, 2, 8]), graph.weight("b", np.zeros((2, 8))))
    graph.op("ReduceSum", y, output="loss", keepdims=0)
    model = graph.save(folder / "experts.onnx", "loss")
    inputs = [save_inputs(folder / "experts.npz", x=np.ones((1, 2, 8), np.float32))]
    for flags in (on("ep=2,tp=2", "--pin", "b=ep = S(0)"), on("ep=2,tp=2", "--pin", "b=ep = S(0), tp = S(1)"),
                  on("dp=2,ep=2", "--pin", "b=ep = S(0)", "--zero", "1")):
        got = runner.train(model, inputs, "output:loss", flags)
        near(got.norm, [4], 1e-12, f"norm with {flags}")


def tied_weight_adds_both_gradients(runner, folder):
    """Megatron-LM 3479e6fb: one of the uses of a tied weight gets lost or garbage."""
    rng = np.random.default_rng(1)
    table, ids = rng.normal(size=(11, 6)), np.array([[1, 4, 4], [10, 0, 4]])
    labels = np.array([[2, 5, 1], [0, -100, 10]])
    graph = Graph()
    x = graph.op("Gather", graph.weight("e", table), graph.input("ids", [2, 3], np.int64))
    x = graph.op("Tanh", x)
    head = graph.op("Transpose", "e", perm=[1, 0])
    graph.op("MatMul", x, head, output="logits")
    model = graph.save(folder / "tied.onnx", "logits")
    inputs = [save_inputs(folder / "tied.npz", ids=ids, labels=labels)]
    table = table.astype(np.float32).astype(np.float64)
    hidden = np.tanh(table[ids])
    logits = hidden @ table.T
    valid = labels != -100
    delta = (softmax(logits) - np.eye(11)[np.where(valid, labels, 0)]) * valid[..., None] / valid.sum()
    gradient = np.einsum("bsv,bsh->vh", delta, hidden)
    np.add.at(gradient, ids, delta @ table * (1 - hidden**2))
    for mesh in ("tp=1", "tp=2", "tp=3", "tp=4", "dp=2,tp=2"):
        got = runner.train(model, inputs, "cross_entropy:logits=logits,labels=labels", on(mesh))
        close(got.gradients, {"e": gradient}, 1e-12, f"both uses on {mesh}")


def few_key_heads_share_ranks(runner, folder, tokens=64, batch=2):
    """ms-swift #8219, Megatron-LM #3575, bigcode #11: fewer key heads than ranks."""
    rng = np.random.default_rng(2)
    hidden, heads, groups, size = 128, 8, 2, 16
    draw = lambda *shape: rng.normal(0, 0.1, shape)
    graph = Graph(opset=23)
    x = graph.input("x", [batch, tokens, hidden])

    def project(name, count):
        y = graph.op("MatMul", x, graph.weight(f"{name}.w", draw(hidden, count * size)))
        y = graph.op("Add", y, graph.weight(f"{name}.b", draw(count * size)))
        y = graph.op("Reshape", y, graph.constant([batch, tokens, count, size]))
        return graph.op("Transpose", y, perm=[0, 2, 1, 3])

    y = graph.op("Attention", project("q", heads), project("k", groups), project("v", groups), is_causal=1)
    y = graph.op("Reshape", graph.op("Transpose", y, perm=[0, 2, 1, 3]), graph.constant([batch, tokens, hidden]))
    y = graph.op("MatMul", y, graph.weight("o.w", draw(hidden, hidden)))
    graph.op("Add", y, graph.weight("o.b", draw(hidden)), output="y")
    model = graph.save(folder / "groups.onnx", "y")
    shape = (batch, tokens, hidden)
    inputs = [save_inputs(folder / "groups.npz", x=rng.normal(size=shape).astype(np.float32),
                          t=rng.normal(size=shape).astype(np.float32))]
    one = runner.train(model, inputs, "mse:prediction=y,target=t", on("tp=1"), input_gradients=True)
    for mesh in ("tp=4", "tp=8", "tp=3"):
        got = runner.train(model, inputs, "mse:prediction=y,target=t", on(mesh), input_gradients=True)
        close_gradients(got.gradients, one.gradients, 1e-11, f"one rank on {mesh}")
        close(got.input_gradients, one.input_gradients, 1e-11, f"one rank on {mesh}")


def bias_after_a_row_product_counts_once(runner, folder):
    """MinivLLM #80, TGI #1036, torchtitan #4332: the bias added by every rank."""
    x = np.array([[1, 2, 3, 4], [2, 1, 4, 3]], np.float64)
    w = np.array([[3, 7, 11], [4, 8, 12], [1, 5, 9], [4, 9, 16]], np.float64)
    bias = np.array([100, 200, 300.0])
    graph = Graph()
    y = graph.op("MatMul", graph.input("x", [2, 4]), graph.weight("w", w))
    graph.op("Add", y, graph.weight("b", bias), output="y")
    model = graph.save(folder / "bias.onnx", "y")
    inputs = [save_inputs(folder / "bias.npz", x=x.astype(np.float32), t=np.zeros((2, 3), np.float32))]
    y = x @ w + bias
    for mesh in ("tp=1", "tp=2", "tp=4", "tp=3"):
        pin = [] if mesh == "tp=1" else ["--pin", "w=tp = S(0)"]
        got = runner.train(model, inputs, "mse:prediction=y,target=t", on(mesh, *pin))
        near(got.loss, [(y**2).mean()], 1e-9, f"loss on {mesh}")
        close(got.gradients, {"w": x.T @ y / 3, "b": y.sum(0) / 3}, 1e-13, f"the closed form on {mesh}")


def mean_is_over_all_labels(runner, folder):
    """Megatron-LM adfa873d, #936: the mean of the ranks' means."""
    four = math.log(math.exp(4) - 1)
    logits = np.array([[four, 0], [0, 0], [0, 0], [0, 60], [60, 0], [0, 60]], np.float64)
    labels = np.array([[1, -100, -100], [1, 0, 1]])
    graph = Graph()
    x = graph.input("x", [2, 3, 6])
    graph.op("MatMul", x, graph.weight("w", logits), output="logits")
    model = graph.save(folder / "mean.onnx", "logits")
    inputs = [save_inputs(folder / "mean.npz", x=np.eye(6, dtype=np.float32).reshape(2, 3, 6), labels=labels)]
    exact = logits.astype(np.float32).astype(np.float64)
    valid = labels.reshape(-1) != -100
    gradient = (softmax(exact) - np.eye(2)[np.where(valid, labels.reshape(-1), 0)]) * valid[:, None] / 4
    for mesh in ("tp=1", "dp=2", "dp=2,tp=2", "dp=3"):
        got = runner.train(model, inputs, "cross_entropy:logits=logits,labels=labels", on(mesh))
        near(got.loss, [1.0], 1e-6, f"loss on {mesh}")
        close(got.gradients, {"w": gradient}, 1e-13, f"the closed form on {mesh}")


def ignored_batch_is_zero_with_a_warning(runner, folder):
    """A batch without a label: no NaN."""
    model, inputs = logits_model(folder, np.ones((4, 3)), np.full(4, -100), "ignored")
    for mesh in ("tp=1", "dp=2"):
        got = runner.train(model, inputs, "cross_entropy:logits=logits,labels=labels", on(mesh))
        near(got.loss, [0.0], 0, "loss")
        close(got.gradients, {"w": np.zeros((4, 3))}, 0, "zero")
        if not any("ignored" in warning for warning in got.report["warnings"]):
            raise Failure(f"no warning: {got.report['warnings']}")


CASES = [
    label_smoothing_uses_the_whole_vocabulary,
    gathered_logits_are_not_summed_twice,
    padded_vocabulary_is_masked,
    frozen_weight_passes_the_input_gradient,
    shared_head_norm_sums_over_ranks,
    norms_on_token_shards_sum_over_ranks,
    norm_counts_each_element_once,
    norm_counts_experts_once,
    tied_weight_adds_both_gradients,
    few_key_heads_share_ranks,
    bias_after_a_row_product_counts_once,
    mean_is_over_all_labels,
    ignored_batch_is_zero_with_a_warning,
]

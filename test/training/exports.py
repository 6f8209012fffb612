# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small transformers as exporters write them, in sizes that the test models do not
have: three heads, a vocabulary that no mesh divides, one key head, dropout. The
gradients on one rank are compared with central differences of a second
implementation, onnx.reference in float64; those on meshes with one rank."""

import numpy as np
from training import Failure, Graph, close_gradients, near, save_inputs

DIFFERENCE_BOUND, RANKS_BOUND = 1e-6, 1e-11
STEP = 1e-5


class Model(Graph):
    """Parts of transformers around `Graph`."""

    def __init__(self, seed, opset=20):
        super().__init__(opset)
        self.rng = np.random.default_rng(seed)

    def draw(self, name, *shape, mean=0.0):
        return self.weight(name, mean + self.rng.normal(0, 0.4, shape))

    def linear(self, x, name, rows, columns, bias=True):
        y = self.op("MatMul", x, self.draw(f"{name}.w", rows, columns))
        return self.op("Add", y, self.draw(f"{name}.b", columns)) if bias else y

    def norm(self, x, name, size):
        return self.op("LayerNormalization", x, self.draw(f"{name}.g", size, mean=1), self.draw(f"{name}.c", size), axis=-1, epsilon=1e-5)

    def root_mean_square(self, x, name, size):
        """As exporters spell RMSNorm out."""
        square = self.op("ReduceMean", self.op("Pow", x, self.constant(2, np.float32)), self.constant([-1]), keepdims=1)
        root = self.op("Sqrt", self.op("Add", square, self.constant(1e-5, np.float32)))
        return self.op("Mul", self.draw(f"{name}.g", size, mean=1), self.op("Mul", x, self.op("Reciprocal", root)))

    def heads(self, x, *shape):
        return self.op("Transpose", self.op("Reshape", x, self.constant(shape)), perm=[0, 2, 1, 3])

    def joined(self, x, *shape):
        return self.op("Reshape", self.op("Transpose", x, perm=[0, 2, 1, 3]), self.constant(shape))

    def scores(self, q, k, size):
        product = self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2]))
        return self.op("Div", product, self.constant(np.sqrt(size), np.float32))

    def causal(self, scores, tokens):
        keep = self.constant(np.tril(np.ones((1, 1, tokens, tokens), bool)), bool)
        return self.op("Where", keep, scores, self.constant(-3e38, np.float32))

    def gelu(self, x):
        half = self.op("Mul", x, self.constant(0.5, np.float32))
        erf = self.op("Erf", self.op("Div", x, self.constant(np.sqrt(2), np.float32)))
        return self.op("Mul", half, self.op("Add", erf, self.constant(1, np.float32)))

    def dropout(self, x, ratio):
        if not ratio:
            return x
        return self.op("Dropout", x, self.constant(ratio, np.float32), self.constant(True, bool))


#===-----------------------------------------------------------------------===//
# Models: (graph, inputs, loss)
#===-----------------------------------------------------------------------===//

ENTROPY = "cross_entropy:logits=logits,labels=labels"


def tokens_of(m, batch, tokens, classes, labels=np.int64):
    """Inputs of a language model; some labels are ignored."""
    wanted = m.rng.integers(0, classes, (batch, tokens)).astype(labels)
    wanted[0, ::3] = -100
    return {"ids": m.rng.integers(0, classes, (batch, tokens)), "labels": wanted}


def gpt2(batch=3, tokens=5, heads=3, size=4, classes=23, tied=True, dropout=0.0):
    """Fused q, k, v in a Gemm over all tokens, split in three; the head is the table."""
    m, hidden = Model(11), heads * size
    inputs = tokens_of(m, batch, tokens, classes)
    x = m.op("Gather", m.draw("wte", classes, hidden), m.input("ids", [batch, tokens], np.int64))
    x = m.dropout(m.op("Add", x, m.draw("wpe", tokens, hidden)), dropout)
    for layer in range(2):
        y = m.op("Reshape", m.norm(x, f"{layer}.ln1", hidden), m.constant([-1, hidden]))
        y = m.op("Gemm", y, m.draw(f"{layer}.qkv.w", hidden, 3 * hidden), m.draw(f"{layer}.qkv.b", 3 * hidden))
        y = m.op("Reshape", y, m.constant([batch, tokens, 3 * hidden]))
        parts = m.op("Split", y, m.constant([hidden] * 3), outputs=3, axis=2)
        q, k, v = (m.heads(part, batch, tokens, heads, size) for part in parts)
        p = m.dropout(m.op("Softmax", m.causal(m.scores(q, k, size), tokens), axis=-1), dropout)
        y = m.joined(m.op("MatMul", p, v), batch, tokens, hidden)
        x = m.op("Add", m.dropout(m.linear(y, f"{layer}.o", hidden, hidden), dropout), x)
        y = m.gelu(m.linear(m.norm(x, f"{layer}.ln2", hidden), f"{layer}.up", hidden, 4 * hidden))
        x = m.op("Add", x, m.dropout(m.linear(y, f"{layer}.down", 4 * hidden, hidden), dropout))
    x = m.norm(x, "lnf", hidden)
    head = m.op("Transpose", "wte", perm=[1, 0]) if tied else m.draw("head", hidden, classes)
    m.op("MatMul", x, head, output="logits")
    return m, inputs, ENTROPY


def llama(batch=2, tokens=6, heads=6, groups=2, size=4, classes=19):
    """Grouped heads that Expand repeats, rotary embedding from a table, gated MLP."""
    m, hidden = Model(12), heads * size
    inputs = tokens_of(m, batch, tokens, classes, np.int32)
    x = m.op("Gather", m.draw("embed", classes, hidden), m.input("ids", [batch, tokens], np.int64))
    angle = np.arange(tokens)[:, None] * np.power(100.0, -np.arange(size // 2) / (size // 2))[None]
    table = lambda values: m.constant(np.concatenate([values, values], 1)[None, None], np.float32)
    cos, sin = table(np.cos(angle)), table(np.sin(angle))

    def rotate(x):
        first, second = m.op("Split", x, m.constant([size // 2] * 2), outputs=2, axis=3)
        turned = m.op("Concat", m.op("Neg", second), first, axis=3)
        return m.op("Add", m.op("Mul", x, cos), m.op("Mul", turned, sin))

    def repeat(x):
        x = m.op("Expand", m.op("Unsqueeze", x, m.constant([2])),
                 m.constant([batch, groups, heads // groups, tokens, size]))
        return m.op("Reshape", x, m.constant([batch, heads, tokens, size]))

    for layer in range(2):
        y = m.root_mean_square(x, f"{layer}.n1", hidden)
        q = rotate(m.heads(m.linear(y, f"{layer}.q", hidden, hidden, False), batch, tokens, heads, size))
        k = rotate(m.heads(m.linear(y, f"{layer}.k", hidden, groups * size, False), batch, tokens, groups, size))
        v = m.heads(m.linear(y, f"{layer}.v", hidden, groups * size, False), batch, tokens, groups, size)
        p = m.op("Softmax", m.causal(m.scores(q, repeat(k), size), tokens), axis=-1)
        y = m.joined(m.op("MatMul", p, repeat(v)), batch, tokens, hidden)
        x = m.op("Add", x, m.linear(y, f"{layer}.o", hidden, hidden, False))
        y = m.root_mean_square(x, f"{layer}.n2", hidden)
        gate = m.linear(y, f"{layer}.gate", hidden, 22, False)
        y = m.op("Mul", m.op("Mul", gate, m.op("Sigmoid", gate)), m.linear(y, f"{layer}.up", hidden, 22, False))
        x = m.op("Add", x, m.linear(y, f"{layer}.down", 22, hidden, False))
    m.op("MatMul", m.root_mean_square(x, "n", hidden), m.draw("head", hidden, classes), output="logits")
    return m, inputs, ENTROPY


def classifier(batch=4, tokens=5, heads=3, size=2, kinds=5):
    """An encoder with a mask of padding, the norm after the residual, a pooled first token."""
    m, hidden = Model(13), heads * size
    mask = np.ones((batch, tokens), np.float32)
    mask[1, 3:] = mask[3, 2:] = 0
    inputs = {"ids": m.rng.integers(0, 17, (batch, tokens)), "types": m.rng.integers(0, 2, (batch, tokens)),
              "mask": mask, "labels": m.rng.integers(0, kinds, batch)}
    x = m.op("Add", m.op("Gather", m.draw("words", 17, hidden), m.input("ids", [batch, tokens], np.int64)),
             m.op("Gather", m.draw("kinds", 2, hidden), m.input("types", [batch, tokens], np.int64)))
    x = m.norm(m.op("Add", x, m.draw("places", 1, tokens, hidden)), "ln0", hidden)
    padding = m.op("Unsqueeze", m.input("mask", [batch, tokens]), m.constant([1, 2]))
    padding = m.op("Mul", m.op("Sub", m.constant(1, np.float32), padding), m.constant(-1e9, np.float32))
    q, k, v = (m.heads(m.linear(x, name, hidden, hidden), batch, tokens, heads, size) for name in "qkv")
    p = m.op("Softmax", m.op("Add", m.scores(q, k, size), padding), axis=-1)
    y = m.joined(m.op("MatMul", p, v), batch, tokens, hidden)
    x = m.norm(m.op("Add", m.linear(y, "o", hidden, hidden), x), "ln1", hidden)
    y = m.linear(m.gelu(m.linear(x, "up", hidden, 14)), "down", 14, hidden)
    x = m.norm(m.op("Add", y, x), "ln2", hidden)
    first = m.op("Gather", x, m.constant(0), axis=1)
    m.op("Gemm", m.op("Tanh", m.linear(first, "pool", hidden, hidden)), m.draw("head.w", kinds, hidden),
         m.draw("head.b", kinds), output="logits", transB=1)
    return m, inputs, ENTROPY + ",label_smoothing=0.2"


def one_key_head(batch=2, tokens=7, heads=5, size=4, classes=13):
    """The operators of opset 23; one key head for five, branches side by side."""
    m, hidden = Model(14, opset=23), heads * size
    inputs = tokens_of(m, batch, tokens, classes)
    x = m.op("Gather", m.draw("embed", classes, hidden), m.input("ids", [batch, tokens], np.int64))
    angle = np.arange(tokens)[:, None] * np.array([[1.0, 0.1]])
    tables = [m.constant(np.broadcast_to(t(angle), (batch, tokens, 2)), np.float32) for t in (np.cos, np.sin)]
    y = m.op("RMSNormalization", x, m.draw("n.g", hidden, mean=1), axis=-1, epsilon=1e-5)
    q = m.op("RotaryEmbedding", m.linear(y, "q", hidden, hidden), *tables, num_heads=heads)
    k = m.op("RotaryEmbedding", m.linear(y, "k", hidden, size), *tables, num_heads=1)
    attention = m.op("Attention", q, k, m.linear(y, "v", hidden, size), q_num_heads=heads, kv_num_heads=1, is_causal=1)
    branch = m.linear(m.op("Gelu", m.linear(y, "up", hidden, 18), approximate="tanh"), "down", 18, hidden)
    x = m.op("Add", m.op("Add", x, m.linear(attention, "o", hidden, hidden)), branch)
    m.op("MatMul", m.op("RMSNormalization", x, m.draw("f.g", hidden, mean=1), axis=-1, epsilon=1e-5), m.draw("head", hidden, classes),
         output="logits")
    return m, inputs, ENTROPY


def experts(batch=2, tokens=4, hidden=6, count=3, inner=5):
    """A router weighs experts: its gradient is right only if every expert's part arrives."""
    m = Model(15)
    inputs = {"x": m.rng.normal(size=(batch, tokens, hidden)).astype(np.float32),
              "t": m.rng.normal(size=(batch, tokens, hidden)).astype(np.float32)}
    x = m.norm(m.input("x", [batch, tokens, hidden]), "n", hidden)
    weights = m.op("Softmax", m.linear(x, "router", hidden, count, False), axis=-1)
    up = m.op("Einsum", x, m.draw("up", count, hidden, inner), equation="bth,ehi->btei")
    down = m.op("Einsum", m.op("Relu", up), m.draw("down", count, inner, hidden), equation="btei,eih->bteh")
    m.op("Einsum", weights, down, equation="bte,bteh->bth", output="y")
    return m, inputs, "mse:prediction=y,target=t"


def inner_loss(batch=3, tokens=4, hidden=8, classes=7):
    """The loss is part of the graph, as in exports of training graphs."""
    m = Model(16)
    inputs = tokens_of(m, batch, tokens, classes)
    x = m.op("Gather", m.draw("embed", classes, hidden), m.input("ids", [batch, tokens], np.int64))
    y = m.linear(m.op("Tanh", m.linear(x, "up", hidden, 2 * hidden)), "head", 2 * hidden, classes)
    labels = m.input("labels", [batch, tokens], np.int64)
    valid = m.op("GreaterOrEqual", labels, m.constant(0))
    safe = m.op("Unsqueeze", m.op("Where", valid, labels, m.constant(0)), m.constant([-1]))
    picked = m.op("Squeeze", m.op("GatherElements", m.op("LogSoftmax", y, axis=-1), safe, axis=2), m.constant([-1]))
    counts = m.op("Where", valid, m.constant(1, np.float32), m.constant(0, np.float32))
    total = m.op("ReduceSum", m.op("Mul", picked, counts), keepdims=0)
    m.op("Neg", m.op("Div", total, m.op("ReduceSum", counts, keepdims=0)), output="loss")
    return m, inputs, "output:loss"


def operators(rows=4, size=6):
    """A weight for each operator; the loss is the sum of them all."""
    m, terms = Model(17, opset=20), []
    inputs = {"x": m.rng.normal(0, 0.1, (rows, size)).astype(np.float32)}
    x = m.input("x", [rows, size])

    def add(name, make):
        y = make(m.op("Add", x, m.draw(name, rows, size)))
        factor = m.constant(m.rng.normal(size=1), np.float32)
        terms.append(m.op("ReduceSum", m.op("Mul", m.op("Tanh", y), factor), keepdims=0))

    for name in ("Sin", "Cos", "Exp", "Sqrt", "Log", "Reciprocal", "Sigmoid", "Softplus", "Softsign", "Elu", "HardSwish",
                 "Mish", "HardSigmoid", "LeakyRelu", "Erf", "Abs", "Softmax", "LogSoftmax", "LpNormalization"):
        positive = name in ("Sqrt", "Log", "Reciprocal")
        shift = m.constant(3, np.float32)
        add(name, lambda y: m.op(name, m.op("Add", y, shift) if positive else y))
    add("CumSum", lambda y: m.op("CumSum", y, m.constant(1)))
    add("ReduceMax", lambda y: m.op("ReduceMax", y, m.constant([1])))
    add("ReduceProd", lambda y: m.op("ReduceProd", y, m.constant([1])))
    add("ReduceL2", lambda y: m.op("ReduceL2", y, m.constant([0])))
    add("ReduceLogSumExp", lambda y: m.op("ReduceLogSumExp", y, m.constant([1])))
    add("TopK", lambda y: m.op("TopK", y, m.constant([2]), outputs=2, axis=-1)[0])
    add("Trilu", lambda y: m.op("Trilu", y))
    add("Clip", lambda y: m.op("Clip", y, m.constant(-0.4, np.float32), m.constant(0.3, np.float32)))
    add("Tile", lambda y: m.op("Tile", y, m.constant([2, 1])))
    add("Pad", lambda y: m.op("Pad", y, m.constant([1, 0, 0, 2])))
    # A bias of a softmax is no mask of scores.
    weights = m.draw("gate.w", size, 3)
    add("gate", lambda y: m.op("Softmax", m.op("Add", m.op("MatMul", y, weights), m.draw("gate.b", 3)), axis=-1))
    m.op("Sum", *terms, output="loss")
    return m, inputs, "output:loss"


#===-----------------------------------------------------------------------===//
# Checks
#===-----------------------------------------------------------------------===//


def loss_of(spec, outputs, inputs):
    """The loss of --loss in numpy."""
    value = outputs[0].astype(np.float64)
    if spec.startswith("output:"):
        return float(value)
    if spec.startswith("mse:"):
        return float(((value - inputs["t"])**2).mean())
    smoothing = float(spec.partition("label_smoothing=")[2] or 0)
    labels = inputs["labels"].reshape(-1)
    rows = value.reshape(len(labels), -1)
    log = rows - rows.max(-1, keepdims=True)
    log -= np.log(np.exp(log).sum(-1, keepdims=True))
    picked = np.take_along_axis(log, np.maximum(labels, 0)[:, None], 1)[:, 0]
    row = -(1 - smoothing) * picked - smoothing * log.mean(-1)
    return float(row[labels >= 0].mean())


def check_differences(gradients, loss, weights):
    """Along a random direction of each parameter, and at a few of its entries."""
    rng = np.random.default_rng(0)
    largest = max(np.abs(g).max() for g in gradients.values())
    for name, gradient in gradients.items():
        start = weights[name]
        directions = [rng.choice([-1.0, 1.0], start.shape)]
        for at in rng.integers(0, start.size, 3):
            directions.append(np.zeros(start.shape))
            directions[-1].flat[at] = 1
        for direction in directions:
            ends = []
            for sign in (1, -1):
                weights[name] = start + sign * STEP * direction
                ends.append(loss(weights))
            wanted, got = (ends[0] - ends[1]) / (2 * STEP), float((gradient * direction).sum())
            scale = max(np.abs(gradient).max(), 1e-3 * largest) * np.sqrt(np.count_nonzero(direction))
            if not abs(got - wanted) <= DIFFERENCE_BOUND * scale:
                raise Failure(f"{name}: slope {got}, by differences {wanted}")
        weights[name] = start


def check_export(runner, folder, make, meshes):
    graph, inputs, spec = make()
    output = spec.partition(":")[2].partition(",")[0].partition("=")[2] or "loss"
    model = graph.save(folder / f"{make.__name__}.onnx", output)
    path = save_inputs(folder / f"{make.__name__}.npz", **inputs)
    one = runner.train(model, [path], spec, ["--precision", "f64"])
    trained = {name: value.astype(np.float64) for name, value in graph.weights.items() if name in one.gradients}
    missing = {name for name in graph.weights if not name.startswith("constant_")} - set(trained)
    if missing:
        raise Failure(f"not trained: {sorted(missing)}")
    reference = graph.reference(output, list(trained))
    feeds = {name: inputs[name].astype(np.float64) if inputs[name].dtype == np.float32 else inputs[name]
             for name in inputs if name in {value.name for value in graph.inputs}}
    loss = lambda weights: loss_of(spec, reference.run(None, {**feeds, **weights}), inputs)
    # GELU that is recognised has exact constants, the graph those of f32.
    near(one.loss, [loss(trained)], 1e-7, "loss")
    check_differences(one.gradients, loss, dict(trained))
    for mesh, *flags in meshes:
        got = runner.train(model, [path], spec, ["--precision", "f64", "--mesh", mesh, *flags])
        near(got.loss, one.loss, 1e-12, f"loss on {mesh} {flags}")
        close_gradients(got.gradients, one.gradients, RANKS_BOUND, f"one rank on {mesh} {flags}")


def export_of_three_heads(runner, folder):
    check_export(runner, folder, gpt2, [("tp=2", ), ("tp=3", "--poison"), ("dp=2,tp=2", "--zero", "3"),
                                        ("tp=2", "--sequence-parallel"), ("tp=4", "--recompute", "layers")])


def export_of_grouped_heads(runner, folder):
    check_export(runner, folder, llama, [("tp=2", ), ("tp=3", ), ("tp=4", "--poison"), ("dp=2,tp=2", "--zero", "2"),
                                         ("tp=3", "--sequence-parallel"), ("tp=2", "--no-raise")])


def export_of_a_classifier(runner, folder):
    check_export(runner, folder, classifier, [("tp=2", ), ("tp=3", ), ("dp=3", "--poison"), ("dp=2,tp=2", "--zero", "1"),
                                              ("tp=2", "--sequence-parallel", "--recompute", "layers")])


def export_of_one_key_head(runner, folder):
    check_export(runner, folder, one_key_head, [("tp=2", ), ("tp=5", ), ("dp=2,tp=2", "--poison"),
                                                ("tp=2", "--sequence-parallel")])


def export_of_experts(runner, folder):
    """transformers #48687, Megatron-LM #619: gradients of a router are parts on each rank."""
    check_export(runner, folder, experts, [("tp=2", ), ("tp=3", "--poison"), ("dp=2,tp=3", )])


def export_of_an_inner_loss(runner, folder):
    check_export(runner, folder, inner_loss, [("tp=2", ), ("dp=3", ), ("dp=2,tp=2", "--poison")])


def operators_have_their_gradients(runner, folder):
    check_export(runner, folder, operators, [("tp=2", ), ("dp=3,tp=2", "--poison")])


def dropout_is_in_the_gradient(runner, folder):
    """With a seed the masks are fixed, so that differences of mtp's own loss check them."""
    graph, inputs, spec = gpt2(dropout=0.3)
    path = save_inputs(folder / "dropout.npz", **inputs)

    def train(name, flags, **wanted):
        model = graph.save(folder / f"{name}.onnx", "logits")
        return runner.train(model, [path], spec, ["--precision", "f64", "--seed", "5", *flags], **wanted)

    one = train("start", [])
    rng = np.random.default_rng(1)
    for name in ("wte", "wpe", "0.qkv.w", "0.o.b", "1.ln2.g", "1.down.w"):
        start = graph.weights[name]
        direction, ends, losses = rng.normal(size=start.shape), [], []
        for sign in (1, -1):
            graph.weights[name] = (start + sign * 1e-3 * direction).astype(np.float32)
            ends.append(graph.weights[name].astype(np.float64))
            losses.append(train("moved", [], gradients=False).loss[0])
        graph.weights[name] = start
        got, wanted = float((one.gradients[name] * (ends[0] - ends[1])).sum()), losses[0] - losses[1]
        if not abs(got - wanted) <= 1e-4 * np.abs(one.gradients[name] * (ends[0] - ends[1])).sum():
            raise Failure(f"{name}: slope {got}, by differences {wanted}")
    for flags in (["--mesh", "tp=2"], ["--mesh", "tp=3", "--sequence-parallel"], ["--mesh", "dp=3", "--zero", "2"],
                  ["--mesh", "dp=2,tp=2", "--recompute", "layers"], ["--mesh", "dp=2,tp=2", "--poison"]):
        got = train("start", flags)
        near(got.loss, one.loss, 1e-12, f"loss with {flags}")
        close_gradients(got.gradients, one.gradients, RANKS_BOUND, f"one rank with {flags}")


def exports_of_sixteen_bits_train(runner, folder):
    """Weights in f16 are trained in f32, from the values that the file has."""
    for make in (llama, one_key_head):
        graph, inputs, spec = make()
        graph.weights = {name: np.clip(value, -6e4, 6e4) if value.dtype == np.float32 else value
                         for name, value in graph.weights.items()}
        model = graph.save(folder / f"{make.__name__}.onnx", "logits", half=True)
        path = [save_inputs(folder / f"{make.__name__}.npz", **inputs)]
        one = runner.train(model, path, spec, ["--precision", "f64", "--steps", "10"], parameters=True)
        # Constants that the graph computes with, as the 1/n of a mean, have the file's eleven bits.
        for flags, bound in ((["--mesh", "tp=2"], 5e-3), (["--mesh", "dp=2,tp=2", "--zero", "2"], 5e-3),
                             (["--mesh", "tp=2", "--precision", "bf16"], 0.15),
                             (["--mesh", "dp=2", "--precision", "f16", "--loss-scale", "1024"], 2e-2)):
            got = runner.train(model, path, spec, [*flags, "--steps", "10"], parameters=True)
            if any(value.dtype != np.float32 for value in got.parameters.values()):
                raise Failure(f"weights are not kept in f32 with {flags}")
            close_gradients(got.gradients, one.gradients, bound, f"f64 with {flags}")
            near(got.loss, one.loss, 2 * bound, f"losses with {flags}")


CASES = [exports_of_sixteen_bits_train, export_of_three_heads, export_of_grouped_heads, export_of_a_classifier, export_of_one_key_head,
         export_of_experts, export_of_an_inner_loss, operators_have_their_gradients, dropout_is_in_the_gradient]

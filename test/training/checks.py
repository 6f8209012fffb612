# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks of training on the test models: curves of PyTorch, ten steps on any mesh,
optimizers against numpy, collectives, memory, what is refused."""

import json
import math
import subprocess
from pathlib import Path

import numpy as np
from training import HERE, MODELS, Failure, Graph, close, close_gradients, near, save_inputs

LOSS = "cross_entropy:logits=logits,labels=labels"


def files(model):
    folder = MODELS / model
    return folder / "model.onnx", [folder / "inputs.npz", folder / "labels.npz"]


#===-----------------------------------------------------------------------===//
# Against PyTorch
#===-----------------------------------------------------------------------===//


def curve_flags(curve):
    flags = ["--optimizer", curve["optimizer"], "--lr", curve["lr"], "--steps", len(curve["loss"])]
    for key in ("momentum", "weight_decay", "beta1", "beta2", "clip_norm"):
        if key in curve:
            flags += ["--" + key.replace("_", "-"), curve[key]]
    if "tie" in curve:
        first, second, *how = curve["tie"]
        flags += ["--tie", f"{first},{second}" + "".join(f":{word}" for word in how)]
    return flags


def follows_torch(runner, folder, name, mesh):
    """20 steps: every loss and norm as PyTorch has it, in float64."""
    curve = json.loads((HERE / "curves" / f"{name}.json").read_text())
    model, inputs = files(curve["model"])
    got = runner.train(model, inputs, LOSS, ["--mesh", mesh, "--precision", "f64", *curve_flags(curve)], gradients=False)
    near(got.loss, curve["loss"], 1e-5, f"loss of {name} on {mesh}")
    near(got.norm, curve["grad_norm"], 1e-4 * max(curve["grad_norm"]), f"norm of {name} on {mesh}")


#===-----------------------------------------------------------------------===//
# Ten steps with clipping and dropout
#===-----------------------------------------------------------------------===//

TEN = ["--precision", "f64", "--steps", "10", "--clip-norm", "0.5", "--weight-decay", "0.1", "--warmup", "3",
       "--lr-schedule", "cosine", "--seed", "7"]


def labels_for(runner, model, folder):
    """Inputs with labels for a model without golden ones."""
    path = folder / f"{model}-labels.npz"
    if not path.exists():
        inputs = np.load(MODELS / model / "inputs.npz")
        ids = inputs["input_ids"]
        save_inputs(path, labels=(ids * 7 + 3) % 101)
    return MODELS / model / "model.onnx", [MODELS / model / "inputs.npz", path]


def ten_steps(runner, folder, model, mesh, *flags):
    """Parameters after ten AdamW steps on a mesh are those of one rank."""
    path, inputs = labels_for(runner, model, folder)
    flags = list(flags)
    one = runner.train(path, inputs, LOSS, ["--mesh", "tp=1", *TEN, *[f for f in flags if f in ("--dropout", "on", "--no-raise")]],
                       parameters=True)
    got = runner.train(path, inputs, LOSS, ["--mesh", mesh, *TEN, *flags], parameters=True)
    near(got.loss, one.loss, 1e-12, f"losses on {mesh}")
    close(got.parameters, one.parameters, 1e-10, f"one rank on {mesh} {flags}")
    if one.loss[0] <= one.loss[-1]:
        raise Failure(f"the loss does not fall: {one.loss}")


def dropout_masks_depend_on_seed_and_step(runner, folder):
    """The same seed gives the same losses, another one others; off is the model in evaluation."""
    path, inputs = labels_for(runner, "gpt2-ts-dropout", folder)
    run = lambda *flags: runner.train(path, inputs, LOSS, ["--precision", "f64", "--lr", "0", "--steps", "3", *flags],
                                      gradients=False).loss
    first, again, other, off = run("--seed", "1"), run("--seed", "1"), run("--seed", "2"), run("--dropout", "off")
    if first != again:
        raise Failure(f"{first} and {again} with one seed")
    if len(set(first)) != 3 or set(first) & set(other):
        raise Failure(f"masks repeat: {first}, {other}")
    if len(set(off)) != 1:
        raise Failure(f"without dropout the loss changes: {off}")
    # gpt2-ts has no dropout node, gpt2-ts-dropout seven; `on` follows neither.
    if run("--seed", "1", "--dropout", "on") != first:
        raise Failure("--dropout on differs although all nodes are active")


#===-----------------------------------------------------------------------===//
# Optimizers against numpy
#===-----------------------------------------------------------------------===//


class Perceptron:
    """tanh(x w1 + b1) w2 + b2 with the mean square error, in numpy."""

    def __init__(self, rng):
        self.x, self.t = rng.normal(size=(6, 5)), rng.normal(size=(6, 3))
        self.start = {"w1": rng.normal(size=(5, 7)), "b1": rng.normal(size=7),
                      "w2": rng.normal(size=(7, 3)), "b2": rng.normal(size=3)}
        for values in (self.start, ):
            for name in values:
                values[name] = values[name].astype(np.float32).astype(np.float64)
        self.x, self.t = (value.astype(np.float32).astype(np.float64) for value in (self.x, self.t))

    def save(self, folder):
        graph = Graph()
        for name, value in self.start.items():
            graph.weight(name, value)
        h = graph.op("Tanh", graph.op("Add", graph.op("MatMul", graph.input("x", [6, 5]), "w1"), "b1"))
        graph.op("Add", graph.op("MatMul", h, "w2"), "b2", output="y")
        inputs = save_inputs(folder / "mlp.npz", x=self.x.astype(np.float32), t=self.t.astype(np.float32))
        return graph.save(folder / "mlp.onnx", "y"), [inputs]

    def gradients(self, p):
        h = np.tanh(self.x @ p["w1"] + p["b1"])
        y = h @ p["w2"] + p["b2"]
        dy = 2 * (y - self.t) / y.size
        dh = dy @ p["w2"].T * (1 - h * h)
        return float(((y - self.t)**2).mean()), {"w1": self.x.T @ dh, "b1": dh.sum(0), "w2": h.T @ dy, "b2": dy.sum(0)}


def numpy_steps(model, steps, optimizer, rate, clip):
    parameters, losses, norms = {name: value.copy() for name, value in model.start.items()}, [], []
    state = {name: [np.zeros_like(value), np.zeros_like(value)] for name, value in parameters.items()}
    for step in range(steps):
        loss, gradients = model.gradients(parameters)
        norm = math.sqrt(sum((g**2).sum() for g in gradients.values()))
        losses.append(loss), norms.append(norm)
        factor = min(1.0, clip / (norm + 1e-6)) if clip else 1.0
        for name, g in gradients.items():
            optimizer(parameters[name], g * factor, state[name], rate(step), step + 1)
    return losses, norms, parameters


def numpy_sgd(momentum, decay):
    def update(p, g, state, rate, _):
        g = g + decay * p
        state[0][...] = momentum * state[0] + g
        p -= rate * (state[0] if momentum else g)
    return update


def numpy_adamw(beta1, beta2, eps, decay):
    def update(p, g, state, rate, t):
        p *= 1 - rate * decay
        state[0][...] = beta1 * state[0] + (1 - beta1) * g
        state[1][...] = beta2 * state[1] + (1 - beta2) * g * g
        p -= rate / (1 - beta1**t) * state[0] / (np.sqrt(state[1]) / math.sqrt(1 - beta2**t) + eps)
    return update


def optimizers_follow_their_formulas(runner, folder):
    """20 steps of SGD and AdamW within 1e-9 of numpy, split or not."""
    model = Perceptron(np.random.default_rng(3))
    path, inputs = model.save(folder)
    steps = 20
    cosine = lambda step: 0.05 * ((step + 1) / 4 if step < 4 else (1 + math.cos(math.pi * (step - 4) / 16)) / 2)
    linear = lambda step: 0.05 * (1 - step / 20)
    cases = [
        (numpy_sgd(0, 0), linear, 0, ["--optimizer", "sgd", "--lr-schedule", "linear"]),
        (numpy_sgd(0.9, 0.01), cosine, 0.5, ["--optimizer", "sgd", "--momentum", "0.9", "--weight-decay", "0.01",
                                           "--lr-schedule", "cosine", "--warmup", "4", "--clip-norm", "0.5"]),
        (numpy_adamw(0.9, 0.999, 1e-8, 0.01), lambda step: 0.05, 0, []),
        (numpy_adamw(0.8, 0.95, 1e-6, 0.1), cosine, 1.0, ["--beta1", "0.8", "--beta2", "0.95", "--eps", "1e-6",
                                                        "--weight-decay", "0.1", "--lr-schedule", "cosine",
                                                        "--warmup", "4", "--clip-norm", "1"]),
    ]
    for optimizer, rate, clip, flags in cases:
        losses, norms, parameters = numpy_steps(model, steps, optimizer, rate, clip)
        for mesh in (["--mesh", "tp=1"], ["--mesh", "dp=2,tp=2"], ["--mesh", "dp=3", "--zero", "1"],
                     ["--mesh", "dp=2,tp=2", "--zero", "3"]):
            got = runner.train(path, inputs, "mse:prediction=y,target=t",
                               ["--precision", "f64", "--lr", "0.05", "--steps", steps, *flags, *mesh], parameters=True)
            near(got.loss, losses, 1e-9, f"losses {flags} {mesh}")
            near(got.norm, norms, 1e-9, f"norms {flags} {mesh}")
            close(got.parameters, parameters, 1e-9, f"numpy {flags} {mesh}")


#===-----------------------------------------------------------------------===//
# Collectives and memory
#===-----------------------------------------------------------------------===//


def collectives_are_those_of_the_paper(runner, folder):
    """A GPT-2 layer on tp: two all-reduces forward, two backward; with sequence parallelism
    reduce_scatters and all_gathers that send as much in their place. No logits move."""
    model, inputs = files("gpt2-ts")
    for ranks in (2, 4):
        activation, sent = 2 * 12 * 64 * 4, {}
        for mode, kinds in (("", {"all_reduce": 1}), ("--sequence-parallel", {"reduce_scatter": 1, "all_gather": ranks})):
            flags = ["--mesh", f"tp={ranks}", *mode.split()]
            sites = runner.train(model, inputs, LOSS, flags, gradients=False).report["collectives"]
            # The payload of an all_gather is a block.
            size = lambda site: site["bytes"] * kinds.get(site["kind"], 1)
            if max(map(size, sites)) != activation:
                raise Failure(f"the largest collective has {max(map(size, sites))} bytes, {flags}")
            large = [site for site in sites if size(site) == activation]
            # Two of each kind a layer; forward the embedding, backward the head, of SP both ends.
            wanted = {(kind, phase): 5 for kind in kinds for phase in ("forward", "backward")}
            count = {}
            for site in large:
                key = site["kind"], site["phase"]
                count[key] = count.get(key, 0) + site["count"]
            if count != wanted:
                raise Failure(f"{count} with {flags}")
            sent[mode] = sum(site["wire_bytes"] for site in large)
        if len(set(sent.values())) != 1:
            raise Failure(f"bytes sent: {sent}")


def one_reduction_a_parameter(runner, folder):
    """dp: each parameter's gradient is reduced once a step, activations never; stage 3 gathers what the backward reads once more."""
    for name in ("gpt2-ts", "gpt2-dynamo-dyn", "bert-ts", "llama-opset23-dyn"):
        model, inputs = files(name)
        parameters = None
        for flags, kind in (([], "all_reduce"), (["--zero", "2"], "reduce_scatter"), (["--zero", "3"], "reduce_scatter")):
            report = runner.train(model, inputs, LOSS, ["--mesh", "dp=2", *flags], gradients=False).report
            if parameters is None:
                parameters = sum(int(np.prod(p["shape"])) * 4 for p in report["parameters"] if p["trainable"])
            sites = report["collectives"]
            backward = [site for site in sites if site["phase"] == "backward"]
            if not flags and sum(site["count"] for site in backward) != 1:
                raise Failure(f"{name}: {len(backward)} collectives backward, not one for all gradients")
            moved = sum(site["bytes"] for site in backward if site["kind"] == kind)
            again = sum(2 * site["bytes"] for site in backward if "3" in flags and site["kind"] == "all_gather")  # of two blocks
            if "3" in flags and not 0.5 * parameters < again <= parameters:
                raise Failure(f"{name}: {again} bytes gathered backward for {parameters} of parameters")
            others = sum(site["bytes"] for site in backward if site["kind"] != kind) - again // 2
            if "3" not in flags and any(site["bytes"] > 8 for site in sites if site["phase"] == "forward"):
                raise Failure(f"{name} {flags}: more than the loss is reduced forward")
            # Of the positions only those in use have a gradient to reduce.
            if not 0.95 * parameters <= moved + others < 1.1 * parameters or others > 0.1 * parameters:
                raise Failure(f"{name} {flags}: {moved} bytes of {kind} and {others} others for {parameters} of parameters")


def recomputing_needs_less_memory(runner, folder):
    """What layers keep for the backward pass is not in the arena. (Where it takes the place of gradients that come later, it costs nothing.)"""
    for name, mesh in (("gpt2-ts", "tp=4"), ("llama-dynamo", "dp=2"), ("bert-ts", "dp=2")):
        model, inputs = files(name)
        arena = {mode: runner.train(model, inputs, LOSS, ["--mesh", mesh, "--recompute", mode], gradients=False)
                 .report["arena_bytes_per_rank"] for mode in ("none", "layers")}
        if not arena["layers"] < arena["none"]:
            raise Failure(f"{name} on {mesh}: {arena}")


def memory_follows_the_formulas(runner, folder):
    """f32 AdamW on N = dp ranks, Ψ parameters: 4 Ψ + 4 Ψ + 8 Ψ / N, 4 Ψ + 12 Ψ / N, 16 Ψ / N."""
    model, inputs = files("gpt2-ts")
    for mesh, ranks in (("dp=2", 2), ("dp=2,tp=2", 2), ("dp=3", 3)):
        base = None
        for stage in (0, 1, 2, 3):
            flags = ["--zero", stage] if stage else []
            plan = runner.train(model, inputs, LOSS, ["--mesh", mesh, *flags], gradients=False).report["plan"]
            by = plan["bytes_by"]
            base = base or by["parameters"]
            wanted = {"optimizer": 2 * base / (ranks if stage > 0 else 1), "gradients": base / (ranks if stage > 1 else 1),
                      "parameters": base / (ranks if stage > 2 else 1)}
            for key, value in wanted.items():
                # Constants of the graph stay; blocks are rounded up.
                if not 0.97 * value <= by[key] <= 1.05 * value + 4096:
                    raise Failure(f"stage {stage} on {mesh}: {key} {by[key]}, formula {value:.0f}")


#===-----------------------------------------------------------------------===//
# Sixteen bits
#===-----------------------------------------------------------------------===//


def sixteen_bits_train(runner, folder):
    """bf16 and f16 products with f32 weights: gradients near those of f64, losses fall."""
    model, inputs = files("gpt2-ts")
    exact = runner.train(model, inputs, LOSS, ["--precision", "f64"])
    for precision, flags, bound in (("bf16", [], 3e-2), ("f16", ["--loss-scale", "1024"], 1e-2),
                                    ("f16", ["--loss-scale", "dynamic"], 1e-2)):
        for mesh in ("tp=1", "dp=2,tp=2"):
            got = runner.train(model, inputs, LOSS, ["--precision", precision, "--mesh", mesh, "--steps", "12", *flags],
                               parameters=True)
            finite = np.isfinite(np.array(got.norm, float))
            if finite[0]:
                close_gradients(got.gradients, exact.gradients, bound, f"f64 in {precision} on {mesh}")
            if not got.loss[-1] < got.loss[0] - 1:
                raise Failure(f"losses {got.loss} in {precision} on {mesh}")
            if any(value.dtype != np.float32 for value in got.parameters.values()):
                raise Failure("weights are not kept in f32")


def overflow_changes_nothing(runner, folder):
    """A scale that is too large: all ranks skip the step, a dynamic one recovers."""
    model, inputs = files("gpt2-ts")
    for mesh in ("tp=1", "dp=2,tp=2"):
        flags = ["--precision", "f16", "--mesh", mesh, "--steps", "3"]
        got = runner.train(model, inputs, LOSS, [*flags, "--loss-scale", "1e12"], parameters=True)
        if len(set(got.loss)) != 1 or sum("overflowed" in warning for warning in got.report["warnings"]) != 3:
            raise Failure(f"losses {got.loss}, warnings {got.report['warnings']}")
        still = runner.train(model, inputs, LOSS, ["--precision", "f64", "--lr", "0"], parameters=True)
        close(got.parameters, still.parameters, 0, "the file's weights")


#===-----------------------------------------------------------------------===//
# What is refused
#===-----------------------------------------------------------------------===//


def refusals(runner, folder):
    """Exit 1 with the thing named; usage is exit 2."""
    model, inputs = files("gpt2-ts")
    labels = np.load(inputs[1])["labels"].copy()
    labels[1, 3] = 105
    outside = [inputs[0], save_inputs(folder / "outside.npz", labels=labels)]
    floats = [inputs[0], save_inputs(folder / "floats.npz", labels=labels.astype(np.float32))]
    cases = [
        (inputs, "cross_entropy:logits=nothing,labels=labels", [], 1, "'nothing', which the model lacks"),
        (inputs[:1], LOSS, [], 1, "labels"),
        (outside, LOSS, [], 1, "label 105 at [1, 3] of 'labels'"),
        (floats, LOSS, [], 1, "labels"),
        (inputs, "output:logits", [], 1, "a scalar is needed"),
        (inputs, LOSS, ["--freeze", "absent*"], 1, "'absent*' matches no trainable initializer"),
        (inputs, LOSS, ["--train-only", "absent*"], 1, "'absent*' matches no trainable initializer"),
        (inputs, LOSS, ["--freeze", "*"], 1, "nothing to train"),
        (inputs, LOSS, ["--tie", "a,b"], 1, "there is no initializer 'a'"),
        (inputs, LOSS, ["--tie", "model.transformer.wte.weight,model.transformer.wpe.weight"], 1, "must have one type"),
        (inputs, LOSS, ["--zero", "1", "--mesh", "tp=2"], 1, "dp"),
        (inputs, LOSS, ["--data", "absent*.npz"], 1, "matches no file"),
        (inputs, LOSS, ["--dump-input-grads", folder / "none.npz"], 1, "no input has a gradient"),
        (inputs, "hinge:a=b", [], 2, "hinge"),
    ]
    for given, loss, flags, code, words in cases:
        done = runner.call(model, given, loss, flags)
        if done.returncode != code or words not in done.stderr:
            raise Failure(f"{loss} {flags}: exit {done.returncode} instead of {code} with '{words}': {done.stderr[-400:]}")


def an_op_without_gradient_is_named(runner, folder):
    """Nothing becomes zero in silence: the op is named, or what it keeps from being trained."""

    def model(name, make):
        graph = Graph()
        x = graph.op("MatMul", graph.input("x", [3, 4]), graph.weight("w", np.eye(4) + 0.3))
        graph.op("ReduceSum", make(graph, x), output="loss", keepdims=0)
        return graph.save(folder / f"{name}.onnx", "loss")

    def written(graph, x):
        updates = graph.constant(np.ones((1, 4)), np.float32)
        return graph.op("ScatterElements", x, graph.constant([[0, 1, 2, 0]]), updates, reduction="max")

    inputs = [save_inputs(folder / "x.npz", x=np.arange(12, dtype=np.float32).reshape(3, 4))]
    floats = lambda graph, value: graph.op("Cast", value, to=1)
    for name, make, words in (
            ("written", written, "has no gradient where it combines by max"),
            ("round", lambda graph, x: graph.op("Round", x), "'w' reaches the result only through round"),
            ("index", lambda graph, x: floats(graph, graph.op("ArgMax", x, axis=1)), "'w' reaches the result only through argmax"),
            ("compare", lambda graph, x: floats(graph, graph.op("Less", x, graph.constant(2, np.float32))),
             "'w' reaches the result only through compare")):
        done = runner.call(model(name, make), inputs, "output:loss", [])
        if done.returncode != 1 or words not in done.stderr:
            raise Failure(f"{name}: exit {done.returncode} without '{words}': {done.stderr[-400:]}")


def copies_are_named(runner, folder):
    """Equal bytes that are not tied: a warning; tied: none, and gradients add up."""
    model, inputs = files("gpt2-ts")
    apart = runner.train(model, inputs, LOSS, ["--precision", "f64"])
    first, second = "model.transformer.wte.weight", "onnx::MatMul_523"
    if not any(first in warning and second in warning for warning in apart.report["warnings"]):
        raise Failure(f"no warning of the copy: {apart.report['warnings']}")
    tied = runner.train(model, inputs, LOSS, ["--precision", "f64", "--tie", f"{first},{second}:transposed",
                                              "--mesh", "tp=2"])
    if any("--tie" in warning for warning in tied.report["warnings"]):
        raise Failure(f"a warning though tied: {tied.report['warnings']}")
    wanted = dict(apart.gradients)
    wanted[first] = wanted[first] + wanted.pop(second).T
    close_gradients(tied.gradients, wanted, 1e-12, "the sum of both")
    entry = next(p for p in tied.report["parameters"] if p["name"] == second)
    if entry["tied_to"] != first:
        raise Failure(f"tied_to is {entry['tied_to']}")
    # Each name means the parameter.
    tie = ["--tie", f"{first},{second}:transposed"]
    only = runner.train(model, inputs, LOSS, [*tie, "--train-only", second])
    frozen = runner.train(model, inputs, LOSS, [*tie, "--freeze", second])
    if set(only.gradients) != {first} or {first, second} & set(frozen.gradients):
        raise Failure(f"trained: {sorted(only.gradients)}, {sorted(frozen.gradients)}")
    # The file of parameters has both, so that it replaces the initializers of the model.
    for mesh in (["--mesh", "tp=2"], ["--mesh", "dp=2", "--zero", "3"]):
        got = runner.train(model, inputs, LOSS, ["--tie", f"{first},{second}:transposed", "--check", "--steps", "3", *mesh],
                           parameters=True)
        close({second: got.parameters[second]}, {second: got.parameters[first].T}, 0, "the other's transpose")
        if not {first, second} <= set(got.report["check"]):
            raise Failure(f"compared: {sorted(got.report['check'])}")


def trainable_is_as_described(runner, folder, model):
    """`parameters` of --json lists every initializer; trainable ones are those of meta.json."""
    import onnx
    path, inputs = files(model)
    report = runner.train(path, inputs, LOSS, gradients=False).report
    wanted = set(json.loads((MODELS / model / "meta.json").read_text())["trainable"])
    got = {p["name"] for p in report["parameters"] if p["trainable"]}
    if got != wanted:
        raise Failure(f"missing {sorted(wanted - got)}, extra {sorted(got - wanted)}")
    names = {initializer.name for initializer in onnx.load(path, load_external_data=False).graph.initializer}
    listed = {p["name"] for p in report["parameters"]}
    if names - listed:
        raise Failure(f"not listed: {sorted(names - listed)}")


def freezing_and_checking(runner, folder):
    """Frozen parameters stay; --check compares with one rank in float64."""
    model, inputs = files("gpt2-ts")
    frozen = runner.train(model, inputs, LOSS, ["--mesh", "tp=2", "--freeze", "*wte*", "--freeze", "*ln_*"])
    if any("wte" in name or "ln_" in name for name in frozen.gradients) or len(frozen.gradients) != 18:
        raise Failure(f"trained: {sorted(frozen.gradients)}")
    only = runner.train(model, inputs, LOSS, ["--train-only", "*ln_1*"])
    if len(only.gradients) != 4:
        raise Failure(f"trained: {sorted(only.gradients)}")
    checked = runner.train(model, inputs, LOSS, ["--mesh", "dp=2,tp=2", "--precision", "f64", "--steps", "3", "--check"])
    if len(checked.report["check"]) != 2 * len(checked.gradients):
        raise Failure(f"{len(checked.report['check'])} tensors were compared")


def artifacts_train(runner, folder):
    """A training step from mtp-compile is that of the model; 32-bit labels will do; outputs on request."""
    model, inputs = files("gpt2-ts")
    flags = ["--mesh", "tp=2", "--precision", "f64"]
    artifact = folder / "step.mtp"
    compiler = Path(runner.mtp_run).with_name("mtp-compile")
    done = subprocess.run([compiler, model, "-o", artifact, "--quiet", "--train", "--loss", LOSS, *flags],
                          capture_output=True, text=True)
    if done.returncode:
        raise Failure(f"mtp-compile: exit {done.returncode}: {done.stderr[-500:]}")
    labels = save_inputs(folder / "narrow.npz", labels=np.load(inputs[1])["labels"].astype(np.int32))
    outputs, report = folder / "outputs.npz", folder / "report.json"
    run = [runner.mtp_run, artifact, "--quiet", "--json", report, "--inputs", inputs[0], "--inputs", labels]
    for more, code in ((["--train", "--steps", "4"], 0), ([], 2), (["--train", "--outputs", outputs], 2)):
        done = subprocess.run([*run, *more], capture_output=True, text=True)
        if done.returncode != code:
            raise Failure(f"{more}: exit {done.returncode} instead of {code}: {done.stderr[-500:]}")
        if code == 0:
            loss = json.loads(report.read_text())["loss"]
    whole = runner.train(model, [inputs[0], labels], LOSS, [*flags, "--steps", "4", "--outputs", outputs], gradients=False)
    near(loss, whole.loss, 0, "losses of the artifact")
    first = runner.train(model, inputs, LOSS, [*flags, "--outputs", outputs], gradients=False)
    near(first.loss, whole.loss[:1], 0, "loss with 64-bit labels")
    golden = np.load(MODELS / "gpt2-ts" / "outputs64.npz")["logits"]
    near(np.load(outputs)["logits"], golden, 1e-6, "logits")

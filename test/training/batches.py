# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Micro-batches and files of batches: what --accumulate and --data make of what is given."""

import numpy as np
from checks import LOSS, TEN, files
from training import MODELS, Failure, Graph, close, close_gradients, near, save_inputs


def micro_batches_make_one_batch(runner, folder):
    """Accumulated gradients are those of the whole batch, dropout included."""
    model = MODELS / "gpt2-dynamo-dyn" / "model.onnx"
    inputs = np.load(MODELS / "gpt2-dynamo-dyn" / "inputs.npz")
    labels = np.load(MODELS / "gpt2-dynamo-dyn" / "labels.npz")["labels"]
    whole = {name: np.concatenate([inputs[name], inputs[name][::-1]]) for name in inputs.files}
    labels = np.concatenate([labels, labels[::-1]])
    labels[0, :5] = -100
    path = [save_inputs(folder / "whole.npz", labels=labels, **whole)]
    one = runner.train(model, path, LOSS, ["--mesh", "tp=1", *TEN], parameters=True)
    for mesh, flags in (("tp=1", []), ("dp=2,tp=2", []), ("dp=2", ["--zero", "1"]), ("dp=2,tp=2", ["--zero", "2"]),
                        ("dp=2", ["--zero", "3"])):
        for count in (2, 4) if mesh == "tp=1" else (2,):
            got = runner.train(model, path, LOSS, ["--mesh", mesh, *TEN, "--accumulate", count, *flags], parameters=True)
            near(got.loss, one.loss, 1e-12, f"losses with {count} micro-batches on {mesh} {flags}")
            close_gradients(got.gradients, one.gradients, 1e-11, f"the whole batch on {mesh} {flags}")
            close(got.parameters, one.parameters, 1e-10, f"the whole batch on {mesh} {flags}")


def a_model_of_fixed_size_takes_its_batch_many_times(runner, folder):
    """K times the model's rows are K micro-batches; its own rows are each of them."""
    model, inputs = files("gpt2-ts")
    given, labels = dict(np.load(inputs[0])), np.load(inputs[1])["labels"]
    moved = dict(given, input_ids=(given["input_ids"] + 1) % 101)
    flags = ["--precision", "f64", "--seed", "3"]
    one = runner.train(model, inputs, LOSS, flags)
    others = labels.copy()
    others[:, :7] = -100
    other = save_inputs(folder / "other.npz", labels=others, **moved)
    two = runner.train(model, [other], LOSS, flags)
    both = save_inputs(folder / "both.npz", labels=np.concatenate([labels, others]),
                       **{name: np.concatenate([given[name], moved[name]]) for name in given})
    share = (others >= 0).sum() / ((others >= 0).sum() + (labels >= 0).sum())
    mean = {name: (1 - share) * value + share * two.gradients[name] for name, value in one.gradients.items()}
    for mesh in ("tp=1", "dp=2,tp=2"):
        got = runner.train(model, [both], LOSS, [*flags, "--mesh", mesh, "--accumulate", "2"])
        near(got.loss, [(1 - share) * one.loss[0] + share * two.loss[0]], 1e-12, f"loss on {mesh}")
        close_gradients(got.gradients, mean, 1e-11, f"both batches on {mesh}")
        same = runner.train(model, inputs, LOSS, [*flags, "--mesh", mesh, "--accumulate", "3"])
        near(same.loss, one.loss, 1e-12, f"loss of one batch three times on {mesh}")
        close_gradients(same.gradients, one.gradients, 1e-11, f"one batch on {mesh}")
        if not any("--accumulate" in warning for warning in same.report["warnings"]):
            raise Failure(f"no warning: {same.report['warnings']}")
    for given, count, words in (([both], 3, "3 micro-batches (--accumulate) need as many each"),
                                ([inputs[0], save_inputs(folder / "labels.npz", labels=np.load(both)["labels"])], 2,
                                 "micro-batches (--accumulate), 'attention_mask' those of one")):
        done = runner.call(model, given, LOSS, ["--accumulate", count])
        if done.returncode != 1 or words not in done.stderr:
            raise Failure(f"{count} micro-batches: exit {done.returncode} without '{words}': {done.stderr[-400:]}")


def gradients_of_inputs_are_joined_or_added(runner, folder):
    """A micro-batch has a part of x, and all of the scale: that one's gradients add up."""
    rng = np.random.default_rng(8)
    graph = Graph()
    x, scale = graph.input("x", ["batch", 3]), graph.input("scale", [1, 3])
    graph.op("MatMul", graph.op("Mul", x, scale), graph.weight("w", rng.normal(size=(3, 2))), output="y")
    model = graph.save(folder / "scaled.onnx", "y")
    path = [save_inputs(folder / "scaled.npz", x=rng.normal(size=(4, 3)).astype(np.float32),
                        scale=rng.normal(size=(1, 3)).astype(np.float32), t=rng.normal(size=(4, 2)).astype(np.float32))]
    flags = ["--precision", "f64"]
    whole = runner.train(model, path, "mse:prediction=y,target=t", flags, input_gradients=True)
    for mesh, count in (("tp=1", 2), ("tp=2", 4), ("dp=2", 2), ("dp=2", 4)):
        got = runner.train(model, path, "mse:prediction=y,target=t", [*flags, "--mesh", mesh, "--accumulate", count],
                           input_gradients=True)
        close(got.input_gradients, whole.input_gradients, 1e-12, f"the whole batch on {mesh}")
        close(got.gradients, whole.gradients, 1e-12, f"the whole batch on {mesh}")


def data_files_are_steps(runner, folder):
    """--data reads one file a step, in order, again from the start."""
    model, inputs = files("gpt2-ts")
    arrays = dict(np.load(inputs[0])) | dict(np.load(inputs[1]))
    singles = []
    for i in range(2):
        batch = dict(arrays, input_ids=(arrays["input_ids"] + i) % 101)
        path = save_inputs(folder / f"step-{i}.npz", **batch)
        singles.append(runner.train(model, [path], LOSS, ["--lr", "0"], gradients=False).loss[0])
        twice = {name: np.concatenate([value, value]) for name, value in batch.items()}
        save_inputs(folder / f"twice-{i}.npz", **twice)
    for pattern, more in (("step", []), ("twice", ["--accumulate", "2"])):
        got = runner.train(model, [], LOSS, ["--lr", "0", "--steps", "5", "--data", folder / f"{pattern}-*.npz", *more],
                           gradients=False)
        near(got.loss, [singles[i % 2] for i in range(5)], 1e-6 if more else 0, f"losses of the files {pattern}")


CASES = [micro_batches_make_one_batch, a_model_of_fixed_size_takes_its_batch_many_times,
         gradients_of_inputs_are_joined_or_added, data_files_are_steps]

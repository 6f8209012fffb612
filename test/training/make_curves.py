# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes test/training/curves/NAME.json: 20 training steps in PyTorch, float64.

    pip install torch onnx numpy
    python make_curves.py

PyTorch trains exactly the initializers that meta.json lists as trainable (which
is what mtp lists), as independent parameters except for the ties that a curve
names; AdamW and SGD are torch.optim's. The loss of a step is taken before its
update, the norm of the gradients before clipping.
"""

import json
import pathlib
import sys

import numpy as np
import torch
from onnx_torch import OnnxModule

HERE = pathlib.Path(__file__).parent
MODELS = HERE.parent / "models"
STEPS = 20

CURVES = {
    "gpt2-ts-adamw": {"model": "gpt2-ts", "optimizer": "adamw", "lr": 1e-3},
    "gpt2-ts-tied-clip": {
        "model": "gpt2-ts", "optimizer": "adamw", "lr": 2e-3, "clip_norm": 0.5,
        "tie": ["model.transformer.wte.weight", "onnx::MatMul_523", "transposed"],
    },
    "gpt2-ts-sgd": {
        "model": "gpt2-ts", "optimizer": "sgd", "lr": 1e-2, "momentum": 0.9,
        "weight_decay": 0.01,
    },
    "llama-dynamo-adamw": {
        "model": "llama-dynamo", "optimizer": "adamw", "lr": 1e-3,
        "weight_decay": 0.1, "beta1": 0.8, "beta2": 0.95,
    },
    "bert-dynamo-adamw": {"model": "bert-dynamo", "optimizer": "adamw", "lr": 1e-3},
    "t5-dynamo-dyn-adamw": {
        "model": "t5-dynamo-dyn", "optimizer": "adamw", "lr": 1e-3},
    "vit-dynamo-adamw": {"model": "vit-dynamo", "optimizer": "adamw", "lr": 1e-3},
}


def make_optimizer(curve, parameters):
    if curve["optimizer"] == "sgd":
        return torch.optim.SGD(
            parameters, lr=curve["lr"], momentum=curve.get("momentum", 0),
            weight_decay=curve.get("weight_decay", 0),
        )
    return torch.optim.AdamW(
        parameters, lr=curve["lr"],
        betas=(curve.get("beta1", 0.9), curve.get("beta2", 0.999)),
        weight_decay=curve.get("weight_decay", 0.01),
    )


def train(curve):
    folder = MODELS / curve["model"]
    meta = json.loads((folder / "meta.json").read_text())
    module = OnnxModule(folder / "model.onnx", set(meta["trainable"]))
    tie = curve.get("tie")
    leaves = [
        module.parameters[name] for name in sorted(meta["trainable"])
        if not tie or name != tie[1]
    ]
    inputs = dict(np.load(folder / "inputs.npz"))
    labels = torch.from_numpy(np.load(folder / "labels.npz")["labels"]).long()
    optimizer = make_optimizer(curve, leaves)
    losses, norms = [], []
    for _ in range(STEPS):
        if tie:
            module.parameters[tie[1]] = module.parameters[tie[0]].T
        logits = module(inputs)[meta["loss"]["logits"]]
        loss = torch.nn.functional.cross_entropy(
            logits.reshape(-1, logits.shape[-1]), labels.reshape(-1),
            ignore_index=meta["loss"].get("ignore_index", -100),
        )
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(
            leaves, curve.get("clip_norm", float("inf")))
        optimizer.step()
        losses.append(loss.item())
        norms.append(norm.item())
    golden = meta["loss"].get("value64")
    if golden is not None and abs(losses[0] - golden) > 1e-6 * abs(golden):
        sys.exit(f"{curve['model']}: loss {losses[0]}, meta.json has {golden}")
    return {**curve, "torch": torch.__version__, "loss": losses, "grad_norm": norms}


if __name__ == "__main__":
    torch.manual_seed(0)
    for name, curve in CURVES.items():
        result = train(curve)
        text = json.dumps(result, indent=1)
        (HERE / "curves" / f"{name}.json").write_text(text + "\n")
        print(f"{name}: {result['loss'][0]:.6f} -> {result['loss'][-1]:.6f}")

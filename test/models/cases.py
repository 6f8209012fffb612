# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which model runs in which way: the fixed list of the tests, and all of them."""

import itertools
import json
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
MESHES = ["tp=1", "tp=2", "tp=3", "tp=4", "tp=8", "dp=2,tp=2", "dp=3", "dp=2,tp=4"]
MODES = ["", "poison", "no-raise"]
RANDOM_PLANS = 20
# Data-dependent shapes: refused with exit 1.
REFUSED = ["mixtral-ts"]


@dataclass(frozen=True)
class Case:
    model: str
    mesh: str = "tp=1"
    precision: str = "f32"
    plan: str = ""  # "", "time" (--objective time) or "random:SEED"
    mode: str = ""  # "", "poison" or "no-raise"
    shape: str = ""  # "" or "-alt"

    def name(self):
        parts = [self.model + self.shape, self.mesh, self.precision, self.plan, self.mode]
        return " ".join(part for part in parts if part)

    def flags(self):
        flags = ["--mesh", self.mesh, "--precision", self.precision]
        if self.plan == "time":
            flags += ["--objective", "time"]
        elif self.plan:
            flags += ["--plan", self.plan]
        return flags + ([f"--{self.mode}"] if self.mode else [])


def models():
    return sorted(path.parent.name for path in HERE.glob("*/model.onnx")
                  if path.parent.name not in REFUSED)


def shapes(model):
    return ["", "-alt"] if (HERE / model / "inputs-alt.npz").exists() else [""]


def meta(model):
    return json.loads((HERE / model / "meta.json").read_text())


def every_case():
    """All combinations of model, shape, mesh, plan, precision and mode."""
    plans = ["", "time"] + [f"random:{seed}" for seed in range(RANDOM_PLANS)]
    for model in models():
        for shape, mesh, plan, precision, mode in itertools.product(
                shapes(model), MESHES, plans, ["f32", "f64"], MODES):
            yield Case(model, mesh, precision, plan, mode, shape)


def full_cases(first_seed=0):
    """Every model on every mesh: the chosen plan and that of the objective `time` in
    both precisions and all modes, and RANDOM_PLANS random plans, which take turns
    with precision, mode and shape."""
    for model, mesh in itertools.product(models(), MESHES):
        turn = shapes(model)
        for precision, mode, shape in itertools.product(["f32", "f64"], MODES, turn):
            yield Case(model, mesh, precision, "", mode, shape)
        if mesh == "tp=1":
            continue
        for i, (precision, mode) in enumerate(itertools.product(["f32", "f64"], MODES)):
            yield Case(model, mesh, precision, "time", mode, turn[i % len(turn)])
        for i in range(RANDOM_PLANS):
            yield Case(model, mesh, ["f32", "f64"][i % 2], f"random:{first_seed + i}",
                       ["", "poison", "poison", "", "no-raise"][i % 5], turn[i // 2 % len(turn)])


def fixed_cases():
    """A list that has every model, mesh, plan kind and mode in each precision, and
    moves the combinations along from model to model so that pairs of them meet."""
    cases = []
    for i, model in enumerate(models()):
        turn = lambda k: MESHES[1:][(i + k) % (len(MESHES) - 1)]
        alt = shapes(model)[-1]
        cases += [
            Case(model, "tp=2"),
            Case(model, turn(0), "f64"),
            Case(model, turn(1), "f32", f"random:{i % RANDOM_PLANS}", "poison"),
            Case(model, turn(2), "f64", f"random:{(i + 7) % RANDOM_PLANS}", "", alt),
            Case(model, turn(3), "f32", "time", ["", "poison", "no-raise"][i % 3]),
            Case(model, turn(4), ["f32", "f64"][i % 2], "", "no-raise", alt),
        ]
        if alt:
            cases.append(Case(model, turn(5), ["f64", "f32"][i % 2], "", "poison", alt))
        if i % 4 == 0:
            cases.append(Case(model, "tp=1"))
    return cases

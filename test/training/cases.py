# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which model is trained in which way: the fixed list of the tests, and all of them."""

import itertools
import json
from dataclasses import dataclass

from training import MODELS

MESHES = ["tp=1", "tp=2", "tp=3", "tp=4", "tp=8", "dp=2", "dp=2,tp=2", "dp=2,tp=4"]
MODES = {
    "": [],
    "zero1": ["--zero", "1"],
    "zero2": ["--zero", "2"],
    "zero3": ["--zero", "3"],
    "sequence": ["--sequence-parallel"],
    "recompute": ["--recompute", "layers"],
    "no-raise": ["--no-raise"],
}


@dataclass(frozen=True)
class Case:
    model: str
    mesh: str = "tp=1"
    precision: str = "f64"
    mode: str = ""
    poison: bool = False

    def name(self):
        parts = [self.model, self.mesh, self.precision, self.mode, "poison" if self.poison else ""]
        return " ".join(part for part in parts if part)

    def flags(self):
        flags = ["--mesh", self.mesh, "--precision", self.precision, *MODES[self.mode]]
        return flags + (["--poison"] if self.poison else [])


def models():
    """Folders with golden gradients."""
    return sorted(path.parent.name for path in MODELS.glob("*/grads.npz"))


def meta(model):
    return json.loads((MODELS / model / "meta.json").read_text())


def is_sound(mesh, mode):
    """ZeRO needs dp, sequence parallelism an axis beside it."""
    if mode.startswith("zero"):
        return "dp" in mesh
    return mode != "sequence" or "tp" in mesh and mesh != "tp=1"


def every_case():
    for model, mesh, mode, precision, poison in itertools.product(
            models(), MESHES, MODES, ["f64", "f32"], [False, True]):
        if is_sound(mesh, mode):
            yield Case(model, mesh, precision, mode, poison)


def fixed_cases():
    """Every model, mesh and mode; from model to model the combinations move along."""
    pairs = [(mesh, mode) for mode in MODES for mesh in MESHES if is_sound(mesh, mode)]
    cases, at = [], 0
    for i, model in enumerate(models()):
        for k in range(4):
            mesh, mode = pairs[at % len(pairs)]
            cases.append(Case(model, mesh, "f32" if k == 3 else "f64", mode, (i + k) % 4 == 2))
            at += 11  # prime to the number of pairs
    return cases

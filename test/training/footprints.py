# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`plan.bytes_by` against the buffers of the program itself, as the manifest of the artifact lists them."""

import json
import struct
from math import prod

from training import MODELS, Failure, Runner

LOSS = "cross_entropy:logits=logits,labels=labels"
BYTES = {"f64": 8, "f32": 4, "i64": 8, "i32": 4, "bool": 1}


def manifest(folder):
    """Of the one artifact that a cache holds."""
    (entry, ) = folder.rglob("*.mtpc")
    content = entry.read_bytes()
    begin = content.index(b"MTPA")
    (size, ) = struct.unpack_from("<Q", content, begin + 8)
    return json.loads(content[begin + 32:begin + 32 + size])


def local_bytes(program, layout):
    """Of a rank's block: every axis cuts a dimension once, rounded up to units."""
    shape = list(layout["shape"])
    for index, cut in enumerate(layout["dims"]):
        units = -(-shape[index] // cut["unit"])
        for axis in cut["axes"]:
            units = -(-units // program["axes"]["axes"][axis]["size"])
        if cut["axes"]:
            shape[index] = units * cut["unit"]
    return prod(shape) * BYTES[layout["type"]]


def expected(program, zero):
    """Sums over buffers by kind, and what gradients have of the arena at the end of the largest entry."""
    blocks, places = {}, {}
    for index, parameter in enumerate(program["parameters"]):
        size = local_bytes(program, parameter["layout"])
        blocks.setdefault(parameter["state"], []).append((parameter, size))
        places[index] = (parameter["state"], size)
    sums = {state: sum(size for _, size in some) for state, some in blocks.items()}
    ends = [tensor for entry in program["entries"] for tensor in entry["inputs"] + entry["outputs"]]
    largest = max(program["entries"], key=lambda entry: entry["arena_bytes"])
    if largest["name"] != "main":
        raise Failure(f"the arena of @{largest['name']} is the largest")
    # With stages 2 and 3 a gradient has the block of its states, else that of its parameter.
    trained = sum(size for parameter, size in blocks[""] if parameter["trainable"])
    gradients = sums["exp_avg"] if zero > 1 else trained
    # A gradient is kept where it is computed unless a copy at the end is all that touches the block.
    for index, (state, size) in places.items():
        uses = sum(any(ref["space"] == "parameter" and ref["index"] == index for ref in step["buffers"])
                   for step in largest["program"])
        if state == "gradient" and uses > 1:
            gradients -= size
    arena = largest["arena_bytes"]
    return {
        "parameters": sums[""],
        "optimizer": sums["exp_avg"] + sums["exp_avg_sq"],
        "gradients": sums.get("accumulator", 0) + sums.get("gradient", 0) + gradients,
        "activations": arena - gradients,
        "workspace": sum(local_bytes(program, tensor["layout"]) for tensor in ends),
    }


def parts_are_sums_of_buffers(runner, folder):
    """All stages of ZeRO, with and without micro-batches, gradients that are kept, and recomputing."""
    model = MODELS / "gpt2-ts/model.onnx"
    inputs = [MODELS / "gpt2-ts/inputs.npz", MODELS / "gpt2-ts/labels.npz"]
    modes = [(zero, *mode) for zero in range(4)
             for mode in ((1, False, "none"), (1, True, "layers"), (2, False, "layers"), (2, True, "none"))]
    for number, (zero, accumulate, keep, recompute) in enumerate(modes):
        own = Runner(runner.mtp_run, folder, cache_dir=folder / f"programs-{number}")
        flags = ["--mesh", "dp=2,tp=2", "--accumulate", accumulate, "--recompute", recompute]
        flags += ["--zero", zero] if zero else []
        plan = own.train(model, inputs, LOSS, flags, gradients=keep).report["plan"]
        wanted = expected(manifest(own.cache_dir), zero)
        if plan["bytes_by"] != wanted or sum(wanted.values()) != plan["bytes_per_rank"] or min(wanted.values()) < 0:
            raise Failure(f"{flags}{', gradients kept' if keep else ''}: {plan['bytes_by']}, buffers {wanted}")


CASES = [parts_are_sums_of_buffers]

#!/usr/bin/env python3
# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plan each model again with its nodes in another order and under other names.

    shuffled_models.py           one model of each family, a few orders
    shuffled_models.py --all     every model on every mesh, 20 orders

Every order is one in which nodes stand behind their inputs; initializers are
shuffled, too. The plan file must have the same choices, op by op.
"""

import argparse
import concurrent.futures
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import onnx

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent)]
import cases
import junit
from cases import HERE

ROOT = HERE.parent.parent
FIXED = [("gpt2-ts", "dp=2,tp=2", 20), ("llama-dynamo", "dp=2,tp=2", 8), ("bert-ts", "tp=2", 4),
         ("t5-ts", "tp=4", 4), ("vit-dynamo", "tp=2", 4), ("mixtral-dynamo", "dp=2,tp=2", 4)]


class Failure(Exception):
    pass


def order_of(nodes, chance):
    """Any order of the nodes, by index, in which each stands behind its inputs."""
    maker = {output: index for index, node in enumerate(nodes) for output in node.output}
    missing = [{maker[name] for name in node.input if name in maker} for node in nodes]
    users = [[] for _ in nodes]
    for index, makers in enumerate(missing):
        for before in makers:
            users[before].append(index)
    ready, order = [index for index, makers in enumerate(missing) if not makers], []
    while ready:
        order.append(ready.pop(chance.randrange(len(ready))))
        for user in users[order[-1]]:
            missing[user].remove(order[-1])
            if not missing[user]:
                ready.append(user)
    return order


def shuffle(source, target, chance):
    """Writes the model anew; returns the old name of each new one."""
    model = onnx.load(source, load_external_data=False)
    graph = model.graph
    kept = {value.name for value in [*graph.input, *graph.output, *graph.initializer]} | {""}
    new, old = {}, {}

    def rename(name):
        if name in kept:
            return name
        if name not in new:
            new[name] = f"v{chance.getrandbits(48):x}"
            old[new[name]] = name
        return new[name]

    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in graph.node]
    for node in nodes:
        label = f"n{chance.getrandbits(48):x}"
        old[label], node.name = node.name, label
        node.input[:] = [rename(name) for name in node.input]
        node.output[:] = [rename(name) for name in node.output]
    for value in graph.value_info:
        value.name = rename(value.name)
    initializers = [onnx.TensorProto.FromString(tensor.SerializeToString()) for tensor in graph.initializer]
    chance.shuffle(initializers)
    order = order_of(nodes, chance)
    del graph.node[:], graph.initializer[:]
    graph.node.extend(nodes[index] for index in order)
    graph.initializer.extend(initializers)
    onnx.save(model, target)
    return old


def plan(options, model, mesh, folder):
    """The plan file, and what the plan costs."""
    file, report = folder / "plan.json", folder / "report.json"
    done = subprocess.run(
        [options.mtp_compile, str(model), "-o", str(folder / "out.mtp"), "--mesh", mesh, "--quiet", "--no-cache",
         "--save-plan", str(file), "--json", str(report)],
        capture_output=True, text=True, errors="replace", timeout=300)
    if done.returncode:
        raise Failure(f"exit {done.returncode}: {done.stderr.strip()[-500:]}")
    return json.loads(file.read_text()), json.loads(report.read_text())["plan"]["cost_us"]


def choices(file, old):
    """What the plan says of each op, under its name in the model."""
    named = [{**op, "name": old.get(op["name"], op["name"])} for op in file["ops"]]
    return sorted(json.dumps(op, sort_keys=True) for op in named)


def check(options, name, mesh, orders):
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        first, cost = plan(options, HERE / name / "model.onnx", mesh, folder)
        expected = choices(first, {})
        for data in (HERE / name).glob("model.onnx.*"):
            shutil.copy(data, folder)
        for seed in range(orders):
            old = shuffle(HERE / name / "model.onnx", folder / "model.onnx", random.Random(seed))
            again, again_cost = plan(options, folder / "model.onnx", mesh, folder)
            if again_cost != cost or again["inputs"] != first["inputs"]:
                raise Failure(f"order {seed}: cost {again_cost} us instead of {cost}, or inputs of other layouts")
            for a, b in zip(expected, choices(again, old), strict=True):
                if a != b:
                    raise Failure(f"order {seed}: {b} instead of {a}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mtp-compile", default=str(ROOT / "build/bin/mtp-compile"))
    parser.add_argument("--all", action="store_true", help="every model on every mesh")
    parser.add_argument("--filter", default="", help="only cases whose name contains this")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--junit", help="write the results as XML")
    options = parser.parse_args()
    work = FIXED
    if options.all:
        work = [(name, mesh, 20) for name in cases.models() for mesh in cases.MESHES[1:]]
    work = [item for item in work if options.filter in f"{item[0]} {item[1]}"]

    def one(item):
        name, mesh, orders = item
        start, problem = time.time(), ""
        try:
            check(options, name, mesh, orders)
        except Failure as failure:
            problem = str(failure)
        except subprocess.TimeoutExpired:
            problem = "no end after 300 s"
        return f"{name} on {mesh}", problem, time.time() - start

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(one, work))
    for name, problem, _ in results:
        if problem:
            print(f"FAIL {name}: {problem}")
    failed = sum(1 for result in results if result[1])
    if options.junit:
        junit.write(options.junit, "shuffled", results)
    print(f"shuffled: {len(results) - failed} passed, {failed} failed", flush=True)
    sys.exit(1 if failed or not results else 0)


if __name__ == "__main__":
    main()

# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runners-up of an explanation as pins: check_pins.py EXPLANATION FIRST EVERY COMMAND...

Of the runners-up that differ in more than numbers of layers, those from FIRST on, every EVERYth: the command, with
what is printed as --pin, gives the strategy, and a plan that costs the regret more."""

import json
import re
import subprocess
import sys

explanation, first, every, *command = sys.argv[1:]
plan = json.load(open(explanation))
asked = {}
for op in plan["choices"]:
    for other in op["strategies"][1:2]:
        if other["regret_us"] is not None:
            asked.setdefault(re.sub(r"\d+", "0", op["name"]) + op["op"] + str(other["results"]),
                             (other["pin"], other["regret_us"], other))
for collective in plan["collectives"]:
    if collective["runner_up_pin"]:
        pin, regret = collective["runner_up_pin"], collective["regret_us"]
        asked.setdefault(re.sub(r"\d+", "0", pin), (pin, regret, None))
count = 0
for pin, regret, strategy in list(asked.values())[int(first)::int(every)]:
    file = explanation + ".pinned"
    subprocess.run([*command, "--pin", pin, "--explain-json", file], check=True)
    pinned = json.load(open(file))
    for cost in ("cost_us", "lower_bound_us"):
        assert abs(pinned[cost] - plan[cost] - regret) <= 1e-6, (pin, cost, pinned[cost] - plan[cost], regret)
    if strategy:
        chosen = [op["strategies"][0] for op in pinned["choices"] if op["strategies"][0]["pin"] == pin]
        assert [[c["operands"], c["results"]] for c in chosen] == [[strategy["operands"], strategy["results"]]], (pin, chosen)
    count += 1
assert count >= 5, count
print(f"{count} of {len(asked)} runners-up")

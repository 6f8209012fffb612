# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory budgets: what is chosen, and that what is accepted is what the runtime allocates."""

import json
import re
import subprocess
from pathlib import Path

from training import MODELS, Failure, close_gradients

LOSS = "cross_entropy:logits=logits,labels=labels"


def files(model):
    return MODELS / model / "model.onnx", [MODELS / model / "inputs.npz", MODELS / model / "labels.npz"]


def check_bytes(report, budget):
    """The runtime's own numbers are those of the plan, and within the budget."""
    plan = report["plan"]
    by = plan["bytes_by"]
    if sum(by.values()) != plan["bytes_per_rank"] or plan["bytes_per_rank"] > budget:
        raise Failure(f"{plan['bytes_per_rank']} bytes, {by}, budget {budget}")
    if report["arena_bytes_per_rank"] != plan["arena_bytes_per_rank"]:
        raise Failure(f"arena of {report['arena_bytes_per_rank']}, planned {plan['arena_bytes_per_rank']}")
    if report["parameter_bytes_per_rank"] != by["parameters"]:
        raise Failure(f"parameters of {report['parameter_bytes_per_rank']}, planned {by['parameters']}")
    if plan["budget"]["bytes"] != budget or plan["budget"]["used"] != plan["bytes_per_rank"]:
        raise Failure(f"{plan['budget']} for {plan['bytes_per_rank']} bytes")


def check_sum(plan):
    """The planner's sum is no less than what is allocated, the estimate not much more; what is computed again is not in it.
    The cheapest layouts whose bound is within the budget fit, if there are any."""
    for tried in plan["budget"]["tried"]:
        if "bound" not in tried or "bytes" not in tried or tried["recompute"] != "none":
            continue
        ratio = tried["bound"] / tried["bytes"]
        if ratio < 1 or (ratio >= 2 and tried["sum"] == "estimate"):
            raise Failure(f"the planner's sum is far from what is allocated: {tried}")
    proof, bytes_given = plan.get("certificate", {}), plan["budget"]["bytes"]
    if plan["budget"].get("bounded_cost_us") is not None and plan["budget"]["used"] > bytes_given:
        raise Failure(f"layouts have a bound within {bytes_given} bytes, and none fits: {plan['budget']}")
    if "within_bytes" not in proof:
        return
    if proof["sum_bytes"] > proof["within_bytes"] or (proof["within_bytes"] < bytes_given) != ("note" in proof):
        raise Failure(f"layouts whose sum is within {bytes_given} bytes were not searched, and no note says so: {proof}")


def compiled(runner, model, folder, flags):
    """`plan` of mtp-compile --json: nothing is run."""
    command = [Path(runner.mtp_run).with_name("mtp-compile"), model, "-o", folder / "model.mtp", "--quiet", "--json",
               folder / "compiled.json", *flags]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=runner.timeout)
    if done.returncode:
        raise Failure(f"exit {done.returncode}: {done.stderr}")
    return json.loads((folder / "compiled.json").read_text())["plan"]


def refused(runner, model, inputs, flags, folder=None):
    """The least budget that the error names; with `folder` that of a program which keeps its gradients."""
    keep = ["--dump-grads", folder / "refused.npz"] if folder else []
    done = runner.call(model, inputs, LOSS, [*flags, *keep])
    found = re.search(r"the least that would do is (\d+) .*Largest tensors of a rank then: '.+ \d+ bytes", done.stderr)
    if done.returncode != 1 or not found:
        raise Failure(f"exit {done.returncode}: {done.stderr.strip()[-500:]}")
    return int(found[1])


def budgets_decide_what_is_split_and_computed_again(runner, folder):
    """From the fastest program down to the smallest: same gradients, and each way to save memory is used."""
    model, inputs = files("gpt2-ts")
    flags = ["--mesh", "dp=2,tp=2", "--precision", "f64"]
    plain = runner.train(model, inputs, LOSS, flags)
    budget, seen = plain.report["plan"]["bytes_per_rank"], set()
    for kept in ([], ["--memory-budget", str(budget // 2)]):
        got = runner.train(model, inputs, LOSS, [*flags, *kept], gradients=False).report
        plan = compiled(runner, model, folder, [*flags, *kept, "--train", "--loss", LOSS])
        if plan["bytes_by"] != got["plan"]["bytes_by"] or plan["arena_bytes_per_rank"] != got["arena_bytes_per_rank"]:
            raise Failure(f"compiled {plan}, run {got['plan']}")
    while True:
        mine = [*flags, "--memory-budget", str(budget)]
        if budget < plain.report["plan"]["bytes_per_rank"] * 0.45:
            break
        got = runner.train(model, inputs, LOSS, mine)
        check_bytes(got.report, budget)
        close_gradients(got.gradients, plain.gradients, 1e-11, f"those without a budget of {budget}")
        chosen = got.report["plan"]["budget"]["chosen"]
        seen |= {key for key in ("zero", "sequence_parallel") if chosen[key]} | {chosen["recompute"]}
        check_sum(got.report["plan"])
        budget = int(got.report["plan"]["bytes_per_rank"] * 0.93)
    least = refused(runner, model, inputs, [*flags, "--memory-budget", "1K"], folder)
    got = runner.train(model, inputs, LOSS, [*flags, "--memory-budget", str(least)])
    check_bytes(got.report, least)
    close_gradients(got.gradients, plain.gradients, 1e-11, "those without a budget")
    seen |= {key for key in ("zero", "sequence_parallel") if got.report["plan"]["budget"]["chosen"][key]}
    if refused(runner, model, inputs, [*flags, "--memory-budget", str(least - 1)], folder) != least:
        raise Failure(f"{least} is the least budget, and {least - 1} has another")
    if seen != {"zero", "sequence_parallel", "layers", "none"}:
        raise Failure(f"only {sorted(seen)} are chosen")


def a_budget_only_changes_what_it_must(runner, folder):
    """Given flags stay; without need nothing is saved; stage 1 is the one that reduces once for all micro-batches."""
    model, inputs = files("gpt2-ts")
    mesh = ["--mesh", "dp=2,tp=2"]
    plain = runner.train(model, inputs, LOSS, mesh, gradients=False).report["plan"]
    bytes_needed = plain["bytes_per_rank"]

    def chosen(flags, budget):
        report = runner.train(model, inputs, LOSS, [*mesh, *flags, "--memory-budget", str(budget)], gradients=False).report
        check_bytes(report, budget)
        return report["plan"]["budget"]["chosen"]

    free = {"layouts": "weights split", "zero": 0, "sequence_parallel": False, "recompute": "none", "recompute_segments": 0}
    if chosen([], bytes_needed) != free:
        raise Failure(f"{chosen([], bytes_needed)} where all fits")
    for share, is_known in ((0.92, True), (0.69, False)):
        given = int(bytes_needed * share)
        budget = compiled(runner, model, folder, [*mesh, "--train", "--loss", LOSS, "--memory-budget", str(given)])["budget"]
        zero = budget["chosen"]["zero"]
        bounds = [t["bound"] for t in budget["tried"]
                  if t.get("sum") == "bound" and t["zero"] == zero and t["bytes"] <= t["bound"] <= given]
        if bool(bounds) != is_known or (budget["bounded_cost_us"] is not None) != is_known:
            raise Failure(f"bounds {bounds} within {given}: {budget['bounded_cost_us']}")
    if chosen(["--recompute", "none"], bytes_needed - 1)["recompute"] != "none":
        raise Failure("--recompute none recomputes")
    if chosen(["--zero", "1"], bytes_needed)["zero"] != 1 or not chosen(["--sequence-parallel"], bytes_needed)["sequence_parallel"]:
        raise Failure("--zero 1 and --sequence-parallel are not kept")
    some = chosen(["--zero", "1", "--recompute", "auto"], int(bytes_needed * 0.76))
    if some["zero"] != 1 or some["recompute"] != "layers" or some["sequence_parallel"]:
        raise Failure(f"{some} is not the fastest with stage 1")
    repeated = chosen(["--accumulate", "4"], int(bytes_needed * 1.1))
    if repeated["zero"] != 1:
        raise Failure(f"{repeated} reduces four times")
    auto = runner.train(model, inputs, LOSS, [*mesh, "--recompute", "auto"], gradients=False).report["plan"]["budget"]
    if auto["chosen"] != free or auto["bytes"] <= bytes_needed:
        raise Failure(f"{auto} for the memory of a whole machine")


def forward_budgets(runner, folder):
    """Every family, its exact bytes and one less: accepted programs are within them, refusals name the least."""
    for model, mesh in (("gpt2-dynamo", "tp=2"), ("llama-ts", "dp=2,tp=2"), ("t5-ts", "tp=3"), ("mixtral-dynamo", "tp=4"),
                        ("vit-ts", "tp=2"), ("bert-cls-ts", "dp=2")):
        def run(*flags):
            command = [runner.mtp_run, MODELS / model / "model.onnx", "--mesh", mesh, "--quiet", "--inputs",
                       MODELS / model / "inputs.npz", "--json", folder / "forward.json", *flags]
            done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=runner.timeout)
            return done, json.loads((folder / "forward.json").read_text())

        done, report = run()
        if done.returncode:
            raise Failure(f"{model}: {done.stderr}")
        needed = report["plan"]["bytes_per_rank"]
        plan = compiled(runner, MODELS / model / "model.onnx", folder, ["--mesh", mesh])
        if plan["bytes_per_rank"] != needed or plan["arena_bytes_per_rank"] != report["arena_bytes_per_rank"]:
            raise Failure(f"{model}: {plan} compiled, {report['plan']} run")
        for budget in (needed, needed - 1):
            done, report = run("--memory-budget", str(budget))
            found = re.search(r"the least that would do is (\d+)", done.stderr)
            if done.returncode == 1 and found and budget < needed:
                least = int(found[1])
                if not report["error"]["nodes"] or report["error"]["kind"] != "memory":
                    raise Failure(f"{report['error']}")
                done, report = run("--memory-budget", str(least))
                budget = least
            if done.returncode:
                raise Failure(f"{model} with {budget}: {done.stderr}")
            check_bytes(report, budget)
            check_sum(report["plan"])


def the_least_budget_is_what_its_program_needs(runner, folder):
    """Nothing that a larger budget finds is smaller than the least that a refusal names; one byte less is refused."""
    for model, mesh in (("vit-dynamo", "dp=2,tp=2"), ("gpt2-ts", "tp=2"), ("bert-ts", "tp=2")):
        def run(budget):
            command = [runner.mtp_run, MODELS / model / "model.onnx", "--mesh", mesh, "--quiet", "--inputs",
                       MODELS / model / "inputs.npz", "--json", folder / "least.json", "--memory-budget", budget]
            done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=runner.timeout)
            found = re.search(r"the least that would do is (\d+)", done.stderr)
            plan = json.loads((folder / "least.json").read_text()).get("plan") or {}
            return done.returncode, int(found[1]) if found else None, plan.get("bytes_per_rank")

        least = run(1)[1]
        for budget, expected in ((least, (0, None, least)), (least - 1, (1, least, None))):
            if (got := run(budget)) != expected:
                raise Failure(f"{model} with {budget}: {got} instead of {expected}")


def given_layouts_have_budgets(runner, folder):
    """A plan file is kept to: only ZeRO and what is computed again are chosen. Programs of GPUs have budgets, too."""
    model, inputs = files("gpt2-ts")
    plain = runner.train(model, inputs, LOSS, ["--mesh", "dp=2,tp=2", "--save-plan", folder / "plan.json"], gradients=False)
    least = refused(runner, model, inputs, ["--mesh", "dp=2,tp=2", "--plan", folder / "plan.json", "--memory-budget", "1K"])
    got = runner.train(model, inputs, LOSS, ["--mesh", "dp=2,tp=2", "--plan", folder / "plan.json", "--memory-budget",
                                             str(least)], gradients=False)
    check_bytes(got.report, least)
    gpu = ["--mesh", "dp=2,tp=2", "--train", "--loss", LOSS, "--zero", "2", "--device", "cuda",
           "--gpu-arch", "sm_90"]
    plan = compiled(runner, model, folder, [*gpu, "--memory-budget", "450000"])
    if plan["budget"]["used"] != plan["bytes_per_rank"] or plan["bytes_per_rank"] > 450000:
        raise Failure(f"{plan} on a GPU")
    if not least < plain.report["plan"]["bytes_per_rank"] or got.report["plan"]["budget"]["chosen"]["sequence_parallel"]:
        raise Failure(f"{got.report['plan']['budget']} with the layouts of a file")


def layouts_follow_the_budget(runner, folder):
    """The fastest layouts keep weights whole; as the budget shrinks they are split. The planner's sum is near the program's bytes."""
    for model, mesh in (("gpt2-ts", "tp=2"), ("vit-ts", "dp=2,tp=2")):
        def run(*flags):
            command = [runner.mtp_run, MODELS / model / "model.onnx", "--mesh", mesh, "--quiet", "--objective", "time",
                       "--inputs", MODELS / model / "inputs.npz", "--json", folder / "layouts.json", *flags]
            done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=runner.timeout)
            return done, json.loads((folder / "layouts.json").read_text())

        plan = run()[1]["plan"]
        least = int(re.search(r"the least that would do is (\d+)", run("--memory-budget", "1K")[0].stderr)[1])
        sizes, needed = [plan["bytes_by"]["parameters"]], plan["bytes_per_rank"]
        for budget in ((needed + least) // 2, least):
            done, report = run("--memory-budget", str(budget))
            if done.returncode:
                raise Failure(f"{model} with {budget}: {done.stderr}")
            check_bytes(report, budget)
            sizes.append(report["plan"]["bytes_by"]["parameters"])
            check_sum(report["plan"])
        if not sizes[0] >= sizes[1] >= sizes[2] or sizes[2] >= sizes[0]:
            raise Failure(f"{model}: parameters of {sizes} bytes")


def models_whose_ops_depend_on_each_other_are_searched(runner, folder):
    """Written-out rotary embeddings: layouts between those of the objectives are found, smaller or faster ones."""
    model = MODELS / "llama-ts/model.onnx"
    flags = ["--mesh", "tp=4"]
    needed = compiled(runner, model, folder, flags)["bytes_per_rank"]

    def within(budget):
        plan = compiled(runner, model, folder, [*flags, "--memory-budget", str(budget)])
        if "depend on each other" in plan["budget"]["unsearched"] or plan["bytes_per_rank"] > budget:
            raise Failure(f"{plan['bytes_per_rank']} bytes within {budget}: {plan['budget']['unsearched']}")
        fitting = [tried for tried in plan["budget"]["tried"] if tried.get("bytes", needed) <= budget]
        given = [tried["time_us"] for tried in fitting if tried["layouts"] != "layouts for the budget"]
        return min(tried["time_us"] for tried in fitting), min(given, default=None)

    fastest, given = within(needed - 1)
    if given is None or fastest >= given:
        raise Failure(f"{fastest} us, and sequence parallelism takes {given} us")
    smaller, given = within(int(needed * 0.88))
    if given is not None or smaller < fastest:
        raise Failure(f"{smaller} us within less, {fastest} us within more; {given} us with sequence parallelism")


def the_sum_has_accumulators(runner, folder):
    """Micro-batches: the planner's sum counts accumulators, in blocks in stages 2 and 3."""
    model = MODELS / "gpt2-ts/model.onnx"
    for zero in ("2", "3"):
        flags = ["--mesh", "dp=2,tp=2", "--train", "--loss", LOSS, "--accumulate", "2", "--zero", zero]
        needed = compiled(runner, model, folder, flags)["bytes_per_rank"]
        plan = compiled(runner, model, folder, [*flags, "--memory-budget", str(needed - 1)])
        if not any("bound" in tried for tried in plan["budget"]["tried"]):
            raise Failure(f"no layouts were searched: {plan['budget']}")
        check_sum(plan)


def every_stage_of_zero_needs_less(runner, folder):
    """Parameters of stage 3 are whole neither between forward and backward nor in accumulators."""
    model = MODELS / "gpt2-ts/model.onnx"
    for more in ([], ["--accumulate", "2"], ["--recompute", "layers"]):
        needed = [compiled(runner, model, folder, ["--mesh", "dp=2", "--train", "--loss", LOSS, *stage, *more])["bytes_per_rank"]
                  for stage in ([], ["--zero", "2"], ["--zero", "3"])]
        if needed != sorted(set(needed), reverse=True):
            raise Failure(f"no ZeRO, stage 2, stage 3 with {more}: {needed} bytes")


def sequence_parallelism_leaves_layouts_open(runner, folder):
    """--sequence-parallel is kept; with less than its fastest layouts need others are chosen, which are slower."""
    model = MODELS / "gpt2-ts/model.onnx"
    flags = ["--mesh", "tp=4", "--train", "--loss", LOSS, "--sequence-parallel", "--recompute", "none"]
    needed = compiled(runner, model, folder, flags)["bytes_per_rank"]
    plan = compiled(runner, model, folder, [*flags, "--memory-budget", str(needed - 1)])
    chosen = plan["budget"]["chosen"]
    if plan["bytes_per_rank"] >= needed or chosen["layouts"] != "layouts for the budget" or not chosen["sequence_parallel"]:
        raise Failure(f"{plan['bytes_per_rank']} of {needed} bytes: {chosen}")


CASES = [sequence_parallelism_leaves_layouts_open, every_stage_of_zero_needs_less, the_sum_has_accumulators, models_whose_ops_depend_on_each_other_are_searched, layouts_follow_the_budget, budgets_decide_what_is_split_and_computed_again, a_budget_only_changes_what_it_must, forward_budgets,
         the_least_budget_is_what_its_program_needs, given_layouts_have_budgets]

# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The keys of --json, and the folder of --output-dir."""

import json
import sys
from pathlib import Path

import numpy as np

report = json.loads(Path(sys.argv[1]).read_text())
assert set(report) == {
    "model", "mesh", "device", "comm", "precision", "seed", "compile_ms", "cache", "plan",
    "parameter_bytes_per_rank", "arena_bytes_per_rank", "collectives", "step_ms", "peak_rss_bytes", "loss",
    "grad_norm", "check", "parameters", "warnings"}, sorted(report)
assert report["mesh"] == "tp=2" and report["device"] == "cpu" and report["comm"] == "threads"
assert report["cache"] in ("hit", "miss") and report["compile_ms"]["total"] > 0
assert set(report["plan"]) >= {
    "cost_us", "lower_bound_us", "all_replicated_us", "megatron_us", "solve_ms", "bytes_per_rank",
    "arena_bytes_per_rank", "bytes_by"}, sorted(report["plan"])
certificate = report["plan"]["certificate"]
assert certificate["proven"] and certificate["gap_us"] == 0 and certificate["method"], certificate
assert certificate["bound_us"] == certificate["cost_us"] == report["plan"]["cost_us"], certificate
assert set(report["plan"]["bytes_by"]) >= {
    "parameters", "gradients", "optimizer", "activations", "workspace"}, report["plan"]["bytes_by"]
assert report["collectives"]
for site in report["collectives"]:
    assert set(site) == {"op", "kind", "axis", "dtype", "phase", "node", "count", "bytes", "wire_bytes",
                         "predicted_count", "predicted_bytes"}, sorted(site)
    assert site["axis"] == "tp" and site["phase"] == "forward"
    assert site["count"] == site["predicted_count"] and site["bytes"] == site["predicted_bytes"], site
assert set(report["step_ms"]) == {"min", "median", "max", "runs"}
assert 0 < report["step_ms"]["min"] <= report["step_ms"]["median"] <= report["step_ms"]["max"]
assert report["peak_rss_bytes"] > 0
assert set(report["check"]) == {"logits"} and set(report["check"]["logits"]) == {"max_abs", "max_rel"}
for parameter in report["parameters"]:
    assert set(parameter) == {"name", "shape", "trainable", "reason", "tied_to", "layout"}, sorted(parameter)

folder = Path(sys.argv[2])
index = json.loads((folder / "index.json").read_text())
assert set(index) == {"logits"}, index
assert np.load(folder / index["logits"]["file"]).shape == tuple(index["logits"]["shape"]) == (2, 12, 101)

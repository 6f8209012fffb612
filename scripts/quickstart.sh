#!/usr/bin/env bash
# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Installs, builds, and runs a pretrained transformer on one rank and on two.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

say "Packages and Python environment"
scripts/setup.sh

say "Build (into build/)"
configure build
ninja -C build mtp-compiler mtp-opt mtp-run mtp-compile

say "Model: rxnmap.onnx, which maps the atoms of a chemical reaction"
scripts/fetch-rxnmap.sh
model=build/quickstart/chython_rxnmap/rxnmap.onnx
"$python" -c 'import json; print("reaction:", json.load(open("examples/rxnmap/meta.json"))["reaction"])'

run() { # mesh, options
  local mesh=$1 name=build/quickstart/${1//[=,]/-}
  shift
  build/bin/mtp-run "$model" --mesh "$mesh" --inputs examples/rxnmap/inputs.npz \
    --outputs "$name.npz" --json "$name.json" --bench=3 "$@"
}
say "One rank"
run tp=1 --quiet
echo "done"
say "Two ranks"
run tp=2

say "Times and agreement"
"$python" examples/rxnmap/compare.py build/quickstart/tp-1 build/quickstart/tp-2

#!/usr/bin/env bash
# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Installs, builds, runs a pretrained transformer on one rank and on two, and
# trains a small one.
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

say "Training: a small GPT-2 over bytes, 30 steps on the text of docs/architecture.md"
"$python" examples/gpt2-bytes/prepare.py docs/architecture.md build/quickstart/bytes
train() { # mesh, options
  local mesh=$1 name=build/quickstart/train-${1//[=,]/-}
  shift
  build/bin/mtp-run examples/gpt2-bytes/model.onnx --mesh "$mesh" --train \
    --loss cross_entropy:logits=logits,labels=labels --data 'build/quickstart/bytes/*.npz' \
    --steps 30 --lr 3e-3 --lr-schedule cosine --warmup 5 --clip-norm 1 \
    --dump-params "$name.npz" --json "$name.json" "$@"
}
say "Training on one rank"
train tp=1 --quiet
echo "done"
say "Training on four: two replicas, each split over two"
train dp=2,tp=2
say "Loss and agreement with one rank"
"$python" examples/gpt2-bytes/agreement.py build/quickstart/train-tp-1 build/quickstart/train-dp-2-tp-2

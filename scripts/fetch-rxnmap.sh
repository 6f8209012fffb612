#!/usr/bin/env bash
# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Fetches the pretrained model rxnmap.onnx (84 MB, package chython-rxnmap 2.0)
# into build/quickstart and checks its SHA-256. Prints nothing where it is there.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

folder=build/quickstart
model=$folder/chython_rxnmap/rxnmap.onnx
expected=$("$python" -c 'import json; print(json.load(open("examples/rxnmap/meta.json"))["sha256"])')
matches() { [ -f "$model" ] && [ "$(sha256sum <"$model" | cut -d' ' -f1)" = "$expected" ]; }

if ! matches; then
  mkdir -p "$folder"
  "$python" -m pip download -q --disable-pip-version-check --no-deps -d "$folder" chython-rxnmap==2.0
  unzip -q -o "$folder"/chython_rxnmap-2.0-*.whl chython_rxnmap/rxnmap.onnx -d "$folder"
  matches || {
    echo "$model has not the SHA-256 of examples/rxnmap/meta.json" >&2
    exit 1
  }
fi

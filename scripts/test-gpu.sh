#!/usr/bin/env bash
# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Everything of device cuda for real, on a machine with a GPU: numbers against
# the CPU, 100 replays, NCCL where there are several GPUs, loopback, and
# compute-sanitizer. The last line is `N passed, N failed`; without a GPU it
# says so and exits with 6.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

if ! command -v nvidia-smi >/dev/null || ! gpus=$(nvidia-smi --query-gpu=name,compute_cap,driver_version --format=csv,noheader) || [ -z "$gpus" ]; then
  echo "test-gpu.sh: there is no NVIDIA GPU here (nvidia-smi finds none); nothing was tested" >&2
  exit 6
fi
say "GPUs"
echo "$gpus"
count=$(printf '%s\n' "$gpus" | wc -l)

say "Build"
configure build
ninja -C build mtp-run mtp-compile mtp-compiler cuda-tests
build/bin/cuda-tests --gtest_brief=1

run=build/bin/mtp-run
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
check() { # name, command...
  local name=$1 code=0
  shift
  "$@" >"$work/log" 2>&1 || code=$?
  if [ "$code" -eq 0 ]; then
    passed=$((passed + 1))
    echo "ok      $name"
  else
    failed=$((failed + 1))
    echo "FAILED  $name (exit $code)"
    tail -n 20 "$work/log"
  fi
}

models=(gpt2-ts llama-ts bert-ts)
folder=test/models
say "Numbers against the CPU in float64"
for model in "${models[@]}"; do
  [ -f "$folder/$model/model.onnx" ] || continue
  for mesh in tp=1 tp=2 tp=4 dp=2,tp=2; do
    check "$model $mesh loopback" "$run" "$folder/$model/model.onnx" --device cuda --mesh $mesh \
      --comm loopback --random-inputs --check --poison
    ranks=$(($(echo "$mesh" | tr -cd '0-9,' | tr ',' '*')))
    [ "$ranks" -le "$count" ] && check "$model $mesh nccl" "$run" "$folder/$model/model.onnx" \
      --device cuda --mesh $mesh --comm nccl --random-inputs --check --poison
  done
done

say "Matrix instructions: attention and products in 16 bits, f32 in tf32"
for model in "${models[@]}"; do
  [ -f "$folder/$model/model.onnx" ] || continue
  for precision in f16 bf16 tf32; do
    check "$model $precision" "$run" "$folder/$model/model.onnx" --device cuda --mesh tp=2 --comm loopback \
      --precision $precision --random-inputs --check --rtol 5e-2
  done
done

say "Training: one step against the CPU; 100 steps, twice the same bits"
twice() { # model, loss
  local n
  for n in 1 2; do
    "$run" "$1" --device cuda --mesh dp=2,tp=2 --comm loopback --train --loss "$2" \
      --random-inputs --steps 100 --dump-params "$work/$n.npz" || return 1
  done
  cmp "$work/1.npz" "$work/2.npz"
}
for model in "${models[@]}"; do
  [ -f "$folder/$model/grads.npz" ] || continue
  loss=$("$python" - "$folder/$model/meta.json" <<'EOF'
import json, sys
loss = json.load(open(sys.argv[1]))["loss"]
print(f"cross_entropy:logits={loss['logits']},labels={loss['labels']}" if loss["kind"] == "cross_entropy" else "")
EOF
  )
  [ -n "$loss" ] || continue
  check "$model training step" "$run" "$folder/$model/model.onnx" --device cuda --mesh dp=2,tp=2 \
    --comm loopback --train --loss "$loss" --random-inputs --check --rtol 1e-3
  check "$model 100 steps" twice "$folder/$model/model.onnx" "$loss"
done

say "compute-sanitizer"
if sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null); then
  for tool in memcheck racecheck synccheck initcheck; do
    for model in "${models[@]}"; do
      [ -f "$folder/$model/model.onnx" ] || continue
      check "$tool $model" "$sanitizer" --tool $tool --error-exitcode 9 "$run" \
        "$folder/$model/model.onnx" --device cuda --mesh tp=2 --comm loopback --random-inputs
    done
  done
else
  echo "compute-sanitizer is not installed: not run"
  failed=$((failed + 1))
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

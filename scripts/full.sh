#!/usr/bin/env bash
# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Every model on every mesh: the chosen plan, that of the objective `time` and 20
# random plans, in f32 and f64, poisoned and unraised, about 40 minutes on two
# cores; then the gradients of every model on every mesh in every mode of
# training, about as long; then every model for GPUs is emulated and every kernel
# for them assembled. First the planner: against CBC, and what is said of its
# plans and regrets on every export. Arguments go to
# test/models/run_models.py: `--seed 20` takes other random plans, `--filter
# gpt2-ts` some cases, `--all` every combination (many hours). The last line is `full: N passed, M failed`.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
scripts/setup.sh
configure build
ninja -C build mtp-compiler mtp-compile mtp-run plan-test plan-models-test plan-bytes-test mtp-cuda-recorder mtp-cuda-check
code=0
log=build/full.log
MTP_ORACLE_LAYERS=12 build/bin/plan-test --gtest_filter='*Cbc*' || code=1
MTP_EVERY_EXPORT=1 build/bin/plan-models-test --gtest_filter='ExportsTest.*:*RegretOfEveryOp*' || code=1
MTP_EVERY_EXPORT=1 build/bin/plan-bytes-test --gtest_filter='*Exports*' || code=1
"$python" test/models/run_models.py --full --jobs "$jobs" "$@" | tee "$log" || code=1
"$python" test/models/shuffled_models.py --all --jobs "$jobs" | tee -a "$log" || code=1
"$python" test/training/run_training.py --all --jobs "$jobs" --cache-dir build/full-cache | tee -a "$log" || code=1
"$python" test/cuda/check_models.py --all | tee -a "$log" || code=1
"$python" test/cuda/emulated_models.py --all | tee -a "$log" || code=1
"$python" test/cuda/assemble.py --all --jobs "$jobs" | tee -a "$log" || code=1
rm -rf build/full-cache
awk '/^[a-z]+: [0-9]+ passed, [0-9]+ failed/ { passed += $2; failed += $4 }
     END { print "full: " passed " passed, " failed " failed" }' "$log"
exit "$code"

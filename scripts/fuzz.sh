#!/usr/bin/env bash
# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# For a long time (default one hour): fuzz.sh [SECONDS [SEED]].
# - Every op in every case of its rule on larger and refined meshes, once.
# - 10 000 random problems of the planner's solver, with and without budget.
# - Every kernel of the emulator's tests, wrong in every place (some minutes).
# - Random graphs of many ops under random plans, compared with one rank, for half
#   of the time.
# - Damaged models, artifacts, arrays and plans for the other half. Nothing may
#   crash, hang, or end with exit 5. Artifacts and arrays are read by a build with
#   AddressSanitizer.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
seconds=${1:-3600} seed=${2:-0}
scripts/setup.sh
configure build
ninja -C build mtp-compiler mtp-run mtp-compile plan-core-test typed-programs random-programs \
  emulator-tests
configure build-asan -DMTP_COMPILER=OFF -DMTP_SANITIZE=address,undefined
ninja -C build-asan mtp-run
code=0

say "Random problems of the solver"
MTP_RANDOM_PROBLEMS=10000 MTP_RANDOM_SEED=$seed build/bin/plan-core-test \
  --gtest_filter='Pareto.EqualsBruteForce*' || code=1

say "Mutants of kernels"
MTP_MUTANTS=all build/bin/emulator-tests --gtest_filter='*Mutants*' || code=1

say "Typed programs"
build/bin/typed-programs test/fuzz/ops.mlir --limit 40 --mesh tp=4 --mesh tp=8 --mesh tp=2x2 \
  --mesh tp=2x3 --mesh dp=2,tp=3 --mesh dp=3,tp=3 --mesh dp=2,tp=2x2 || code=1
build/bin/typed-programs test/fuzz/ops.mlir --f32 --limit 20 --mesh tp=2 --mesh dp=2,tp=2 || code=1

say "Random programs"
build/bin/random-programs test/fuzz/ops.mlir --from $((seed * 100000 + 1)) --ops 20 \
  --seconds $((seconds / 2)) --mesh tp=2 --mesh tp=3 --mesh tp=4 --mesh tp=8 --mesh dp=2,tp=3 \
  --mesh dp=2,tp=4 || code=1

say "Damaged files"
"$python" test/tools/fuzz_files.py --seconds $((seconds / 2)) --seed "$seed" \
  --reader build-asan/bin/mtp-run || code=1
exit $code

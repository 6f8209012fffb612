#!/usr/bin/env bash
# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Changes each factor, linear set, flag, conjugate and neutral element in turn and
# runs the tests of the changed op: every mutant has to fail one. Survivors are
# listed; exits non-zero if there is one. Options are passed on, among them
# --only NAME (one function of test/fuzz/ops.mlir), --list, and --every, which runs
# all tests on each mutant instead of stopping at the first that fails.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
configure build -DMTP_RULE_MUTATIONS=ON
ninja -C build mutate-rules >build/mutate-rules.log || {
  tail -n 50 build/mutate-rules.log
  exit 1
}
fuzz=test/fuzz
build/bin/mutate-rules $fuzz/ops.mlir $fuzz/layouts.txt $fuzz/cases.txt --jobs "$jobs" "$@"

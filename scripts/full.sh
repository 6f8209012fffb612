#!/usr/bin/env bash
# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Every model on every mesh: the chosen plan, that of the objective `time` and 20
# random plans, in f32 and f64, poisoned and unraised. About 40 minutes on two
# cores. Arguments go to test/models/run_models.py: `--seed 20` takes other random
# plans, `--filter gpt2-ts` some cases, `--all` every combination (many hours).
# The last line is `full: N passed, M failed`.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
scripts/setup.sh
configure build
ninja -C build mtp-compiler mtp-run
exec "$python" test/models/run_models.py --full --jobs "$jobs" "$@"

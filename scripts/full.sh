#!/usr/bin/env bash
# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Every model x mesh x plan x precision x mode x shape: many hours. Arguments go
# to test/models/run_models.py, for example `--every 50` or `--filter gpt2-ts`.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
scripts/setup.sh
configure build
ninja -C build mtp-compiler mtp-run
"$python" test/models/run_models.py --all --jobs "$jobs" --cache-dir build/test-cache "$@"

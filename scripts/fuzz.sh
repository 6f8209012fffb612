#!/usr/bin/env bash
# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Damaged models, artifacts, arrays and plans for a long time (default one hour):
# fuzz.sh [SECONDS [SEED]]. Nothing may crash, hang, or end with exit 5. Artifacts
# and arrays are read by a build with AddressSanitizer.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
scripts/setup.sh
configure build
ninja -C build mtp-compiler mtp-run mtp-compile
configure build-asan -DMTP_COMPILER=OFF -DMTP_SANITIZE=address,undefined -DCMAKE_BUILD_TYPE=RelWithDebInfo
ninja -C build-asan mtp-run
"$python" test/tools/fuzz_files.py --seconds "${1:-3600}" --seed "${2:-0}" \
  --reader build-asan/bin/mtp-run

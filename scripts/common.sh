# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Sourced by the other scripts: where things are, and how mtp is built.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
python="$root/.venv/bin/python"
jobs=$(nproc)

say() { printf '\n== %s\n' "$*"; }

# configure DIR [cmake options]
configure() {
  local dir=$1
  shift
  mkdir -p "$dir"
  cmake -G Ninja -S "$root" -B "$dir" -DCMAKE_C_COMPILER=clang-22 \
    -DCMAKE_CXX_COMPILER=clang++-22 "$@" >"$dir/configure.log" 2>&1 || {
    cat "$dir/configure.log"
    return 1
  }
}

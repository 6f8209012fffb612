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
# A folder that is new compiles several files at once, which takes half the time;
# `cmake -DCMAKE_UNITY_BUILD=OFF build` is for work on the code.
configure() {
  local dir=$1
  shift
  mkdir -p "$dir"
  [ -f "$dir/CMakeCache.txt" ] ||
    set -- -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=6 "$@"
  cmake -G Ninja -S "$root" -B "$dir" -DCMAKE_C_COMPILER=clang-22 \
    -DCMAKE_CXX_COMPILER=clang++-22 "$@" >"$dir/configure.log" 2>&1 || {
    cat "$dir/configure.log"
    return 1
  }
}

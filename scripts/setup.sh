#!/usr/bin/env bash
# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Installs what mtp is built and tested with on Debian 12: packages that are
# missing, and a Python environment in .venv. Does nothing where all is there.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

packages=(
  clang-22 clang-format-22 lld-22 libclang-rt-22-dev
  llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools
  libprotobuf-dev protobuf-compiler zlib1g-dev libdnnl-dev
  nlohmann-json3-dev libcli11-dev libgtest-dev libbenchmark-dev
  libopenmpi-dev openmpi-bin coinor-cbc
  cmake ninja-build ccache git unzip python3 python3-pip python3-venv
)

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
  [ "$status" = "install ok installed" ] || missing+=("$package")
done

if [ ${#missing[@]} -gt 0 ]; then
  echo "installing: ${missing[*]}"
  as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get update -q
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends "${missing[@]}"
fi

if ! "$python" -c 'import numpy, onnx, onnxruntime' 2>/dev/null; then
  python3 -m venv .venv
  .venv/bin/pip install -q --disable-pip-version-check -r scripts/requirements.txt
fi

#!/usr/bin/env bash
# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Builds everything with warnings as errors and runs every test. The last line
# is `N passed, N failed`; exits non-zero if a test or a step failed.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
start=$(date +%s)
results=$root/build/results
rm -rf "$results"

say "Packages and Python environment"
scripts/setup.sh

say "Build"
configure build
ninja -C build
mkdir -p "$results"
scripts/fetch-rxnmap.sh
echo "built after $(($(date +%s) - start)) s"

files=()
# step NAME command...: runs a command that leaves NAME.xml in the results. A
# failure is counted from that file; a command that leaves none counts as one.
step() {
  local name=$1
  shift
  say "$name"
  files+=("$results/$name.xml")
  local begin code=0
  begin=$(date +%s)
  "$@" || code=$?
  echo "($name: $(($(date +%s) - begin)) s)"
  if [ "$code" -ne 0 ] && ! grep -qs '<failure\|<error' "$results/$name.xml"; then
    printf '<testsuite><testcase classname="%s" name="exit code %s"><failure/></testcase></testsuite>\n' \
      "$name" "$code" >"$results/$name-exit.xml"
    files+=("$results/$name-exit.xml")
  fi
}

unit() { # build folder, name
  ctest --test-dir "$1" -j "$jobs" --timeout 900 --output-on-failure --no-tests=error \
    --output-junit "$results/$2.xml" >"$results/$2.log" 2>&1 || {
    grep -v -E 'Test +#.*Passed' "$results/$2.log" | tail -n 100
    return 1
  }
}

sanitized() { # name, sanitizers
  configure "build-$1" -DMTP_COMPILER=OFF -DMTP_SANITIZE="$2"
  ninja -C "build-$1" >"build-$1/build.log" || {
    tail -n 50 "build-$1/build.log"
    return 1
  }
  unit "build-$1" "$1"
}

# A command without results of its own: one test.
whole() { # name, command...
  local name=$1 result="" code=0
  shift
  "$@" >"$results/$name.log" 2>&1 || code=$?
  tail -n 30 "$results/$name.log"
  [ "$code" -eq 0 ] || result="<failure message='exit code $code'/>"
  printf '<testsuite><testcase classname="%s" name="all">%s</testcase></testsuite>\n' \
    "$name" "$result" >"$results/$name.xml"
}

lit() { lit-22 -sv --xunit-xml-output="$results/lit.xml" build/test; }

export ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1
# No calibration of the user: plans are made with the default costs.
export XDG_CONFIG_HOME=$root/build/test/config
export TSAN_OPTIONS=suppressions=$root/scripts/tsan.supp
step sources "$python" scripts/check_sources.py --junit "$results/sources.xml"
step unit unit build unit
step lit lit
for kind in node opset structure; do
  step onnx-$kind whole onnx-$kind "$python" test/onnx/${kind}_tests.py build/bin/mtp-run
done
step onnx-damaged whole onnx-damaged "$python" test/onnx/fuzz.py build/bin/mtp-run test/models --rounds 100
step models "$python" test/models/run_models.py --jobs "$jobs" --junit "$results/models.xml" \
  --cache-dir build/test-cache
step shuffled "$python" test/models/shuffled_models.py --jobs "$jobs" --junit "$results/shuffled.xml"
step training "$python" test/training/run_training.py --jobs "$jobs" --junit "$results/training.xml" \
  --cache-dir build/test-cache
step cuda "$python" test/cuda/check_models.py --junit "$results/cuda.xml"
step emulated "$python" test/cuda/emulated_models.py --junit "$results/emulated.xml"
step assemble "$python" test/cuda/assemble.py --jobs "$jobs" --junit "$results/assemble.xml"
step limits "$python" test/models/check_limits.py --junit "$results/limits.xml"
step asan sanitized asan address,undefined
step tsan sanitized tsan thread
step fuzz "$python" test/tools/fuzz_files.py --seconds 60 --junit "$results/fuzz.xml"

say "All tests, after $(($(date +%s) - start)) s"
"$python" scripts/summarize.py "${files[@]}"

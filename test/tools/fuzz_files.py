#!/usr/bin/env python3
# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Give the tools damaged files: models, weights, arrays, plans, artifacts.

Every run must end in time with exit 0, 1 or 2 and, where it fails, one message;
never with a signal, never with exit 5 (internal error). Files that break this
are kept in build/fuzz-failures.
"""

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from xml.sax.saxutils import quoteattr

ROOT = Path(__file__).resolve().parent.parent.parent
MODELS = ROOT / "test/models"
# Models whose weights lie in a file of their own: their .onnx is all structure.
STRUCTURES = ["bert-dynamo-dyn", "llama-dynamo", "vit-dynamo"]
HUGE = [b"\xff" * 9 + b"\x01", b"\xff\xff\xff\xff\x0f", b"\x80" * 9 + b"\x01", b"\x00" * 8, b"\xff" * 8,
        b"\x7f" + b"\xff" * 7]


def damage(data, rng):
    """A changed copy of the bytes: flips, cuts, repeats, large numbers."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4, 16])):
        if not data:
            break
        at, kind = rng.randrange(len(data)), rng.randrange(7)
        length = rng.choice([1, 2, 4, 8, 64, 1024])
        if kind <= 1:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            data[at] = rng.randrange(256)
        elif kind == 3:
            del data[at:at + length]
        elif kind == 4:
            data[at:at] = data[at:at + length]
        elif kind == 5:
            huge = rng.choice(HUGE)
            data[at:at + len(huge)] = huge
        else:
            del data[at:]
    return bytes(data)


class Fuzzer:
    def __init__(self, options, folder):
        self.options, self.folder = options, Path(folder)
        self.rng = random.Random(options.seed)
        self.counts, self.failures = {}, []
        self.plan = self.folder / "plan.json"
        self.artifact = self.folder / "gpt2.mtp"
        gpt2 = MODELS / "gpt2-ts"
        self.check_call([options.mtp_run, gpt2 / "model.onnx", "--mesh", "tp=2", "--inputs", gpt2 / "inputs.npz",
                         "--save-plan", self.plan, "--quiet"])
        compiler = Path(options.mtp_run).parent / "mtp-compile"
        self.check_call([compiler, gpt2 / "model.onnx", "--mesh", "tp=2", "-o", self.artifact, "--quiet"])

    @staticmethod
    def check_call(command):
        subprocess.run([str(part) for part in command], check=True, timeout=300)

    def model(self):
        name = self.rng.choice(STRUCTURES)
        folder = self.folder / "model"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(MODELS / name, folder)
        victim = folder / self.rng.choice(["model.onnx"] * 7 + ["model.onnx.data"])
        victim.write_bytes(damage(victim.read_bytes(), self.rng))
        return victim, [self.options.mtp_run, folder / "model.onnx", "--mesh", "tp=2", "--inputs",
                        folder / "inputs.npz", "--no-cache"]

    def arrays(self):
        victim = self.folder / "inputs.npz"
        victim.write_bytes(damage((MODELS / "gpt2-ts/inputs.npz").read_bytes(), self.rng))
        return victim, [self.options.reader, self.artifact, "--inputs", victim]

    def damaged_plan(self):
        victim = self.folder / "damaged.json"
        victim.write_bytes(damage(self.plan.read_bytes(), self.rng))
        return victim, [self.options.mtp_run, MODELS / "gpt2-ts/model.onnx", "--mesh", "tp=2", "--inputs",
                        MODELS / "gpt2-ts/inputs.npz", "--plan", victim]

    def damaged_artifact(self):
        victim = self.folder / "damaged.mtp"
        victim.write_bytes(damage(self.artifact.read_bytes(), self.rng))
        return victim, [self.options.reader, victim, "--inputs", MODELS / "gpt2-ts/inputs.npz"]

    def once(self, name, make):
        victim, command = make()
        command = [str(part) for part in command] + ["--quiet"]
        problem = None
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace",
                                  timeout=self.options.timeout)
            if done.returncode not in (0, 1, 2):
                problem = f"exit {done.returncode}: {done.stderr[-800:]}"
            elif done.returncode and ": error: " not in done.stderr:
                problem = f"exit {done.returncode} without a message"
        except subprocess.TimeoutExpired:
            problem = f"no end after {self.options.timeout} s"
        self.counts[name] = self.counts.get(name, 0) + 1
        if problem:
            kept = ROOT / "build/fuzz-failures" / f"{len(self.failures)}-{victim.name}"
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(victim, kept)
            self.failures.append(f"{name}, {kept.relative_to(ROOT)}: {problem}")
            print(self.failures[-1], flush=True)

    def run(self):
        kinds = {"models": self.model, "arrays": self.arrays, "plans": self.damaged_plan,
                 "artifacts": self.damaged_artifact}
        end = time.time() + self.options.seconds
        while time.time() < end and len(self.failures) < 20:
            for name, make in kinds.items():
                self.once(name, make)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=60, help="of one run")
    parser.add_argument("--mtp-run", default=str(ROOT / "build/bin/mtp-run"))
    parser.add_argument("--reader", help="the mtp-run that reads arrays and artifacts (default: --mtp-run)")
    parser.add_argument("--junit", help="write the results as XML")
    options = parser.parse_args()
    options.reader = options.reader or options.mtp_run
    with tempfile.TemporaryDirectory() as folder:
        fuzzer = Fuzzer(options, folder)
        fuzzer.run()
    counts = ", ".join(f"{count} {name}" for name, count in fuzzer.counts.items())
    body = f"<failure message={quoteattr(' | '.join(fuzzer.failures))}/>" if fuzzer.failures else ""
    if options.junit:
        Path(options.junit).write_text(f'<testsuite name="fuzz"><testcase classname="fuzz" name={quoteattr(counts)}>'
                                       f"{body}</testcase></testsuite>\n")
    print(f"damaged files: {counts}; {len(fuzzer.failures)} failures")
    sys.exit(1 if fuzzer.failures else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mtp-run and mtp-compile around a compiler that knows one model (TinyCompiler.cpp).

    tiny_run.py BIN LIBRARY
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import numpy as np

BIN, LIBRARY = Path(sys.argv[1]), sys.argv[2]
WEIGHTS = np.array([[i - 2 * j for j in range(3)] for i in range(8)], np.float64)


class TinyRun(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        (self.folder / "tiny.onnx").write_bytes(b"")
        self.x = np.random.default_rng(0).standard_normal((2, 8)).astype(np.float32)
        np.savez(self.folder / "x.npz", x=self.x)
        self.environment = dict(os.environ, MTP_COMPILER_LIBRARY=LIBRARY)

    def command(self, tool, arguments):
        return [str(BIN / tool), *(str(argument) for argument in arguments)]

    def tool(self, tool, *arguments, code=0, **environment):
        done = subprocess.run(self.command(tool, arguments), cwd=self.folder, capture_output=True, text=True,
                              env={**self.environment, **environment}, timeout=120)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def run_model(self, *arguments, code=0, **environment):
        return self.tool("mtp-run", "tiny.onnx", *arguments, code=code, **environment)

    def output(self, name="y.npz"):
        return np.load(self.folder / name)["a/y"]

    def test_ranks_compute_the_product(self):
        for mesh in ("tp=1", "tp=2", "tp=4", "tp=8"):
            self.run_model("--mesh", mesh, "--inputs", "x.npz", "--outputs", "y.npz")
            np.testing.assert_allclose(self.output(), self.x @ WEIGHTS, rtol=1e-5, atol=1e-5)

    def test_f64_widens_f32_inputs(self):
        self.run_model("--precision", "f64", "--mesh", "tp=2", "--inputs", "x.npz", "--outputs", "y.npz")
        self.assertEqual(self.output().dtype, np.float64)
        np.testing.assert_allclose(self.output(), self.x.astype(np.float64) @ WEIGHTS, rtol=1e-14, atol=1e-14)

    def test_check_agrees_or_exits_with_3(self):
        done = self.run_model("--mesh", "tp=2", "--random-inputs=3", "--check", "--json", "r.json")
        self.assertRegex(done.stdout, r"a/y .* ok")
        self.assertLess(json.loads((self.folder / "r.json").read_text())["check"]["a/y"]["max_rel"], 1e-5)
        done = self.run_model("--mesh", "tp=2", "--random-inputs=3", "--check", "--json", "r.json", "--quiet",
                              code=3, TINY_MISTAKE="0.01")
        self.assertRegex(done.stderr, r"a/y .* differs")
        report = json.loads((self.folder / "r.json").read_text())
        self.assertEqual((report["error"]["code"], report["error"]["kind"]), (3, "mismatch"))
        self.assertGreater(report["check"]["a/y"]["max_abs"], 1e-3)
        self.run_model("--mesh", "tp=2", "--random-inputs=3", "--check", "--atol", "1", TINY_MISTAKE="0.01")

    def test_summary_and_report_have_plan_and_collective(self):
        done = self.run_model("--mesh", "tp=2", "--inputs", "x.npz", "--json", "r.json", "--bench=0.05", "--explain",
                              "--explain-json", "e.json")
        self.assertIn("the all-reduce sums the parts", done.stdout)
        self.assertRegex(done.stdout, r"w +\[8, 3\] +48 B +tp = S\(0\)")
        self.assertRegex(done.stdout, r"product +all_reduce on tp \(reduce_from\) +24 B +24 B +the contraction is split")
        self.assertIn("warning: this is the compiler of the tests", done.stderr)
        self.assertEqual(json.loads((self.folder / "e.json").read_text()), {"collectives": 1})
        report = json.loads((self.folder / "r.json").read_text())
        site, = report["collectives"]
        self.assertEqual((site["count"], site["bytes"], site["wire_bytes"]), (1, 24, 24))
        self.assertEqual(report["parameter_bytes_per_rank"], 48)
        self.assertEqual(report["warnings"], ["this is the compiler of the tests"])
        self.assertGreaterEqual(report["step_ms"]["runs"], 3)
        self.assertEqual(report["compile_ms"]["codegen"], 2)

    def test_quiet_says_nothing(self):
        done = self.run_model("--inputs", "x.npz", "--quiet")
        self.assertEqual((done.stdout, done.stderr), ("", ""))

    def test_artifact_runs_without_the_compiler_to_the_same_bytes(self):
        self.run_model("--mesh", "tp=2", "--inputs", "x.npz", "--outputs", "1.npz")
        self.tool("mtp-compile", "tiny.onnx", "--mesh", "tp=2", "-o", "m.mtp", "--json", "c.json")
        done = self.tool("mtp-run", "m.mtp", "--inputs", "x.npz", "--outputs", "2.npz", "--json", "r.json",
                         MTP_COMPILER_LIBRARY="/nonexistent.so")
        self.assertRegex(done.stdout, r"product +all_reduce on tp")
        self.assertEqual((self.folder / "1.npz").read_bytes(), (self.folder / "2.npz").read_bytes())
        self.assertEqual(json.loads((self.folder / "r.json").read_text())["mesh"], "tp=2")
        damaged = bytearray((self.folder / "m.mtp").read_bytes())
        damaged[len(damaged) // 2] ^= 1
        (self.folder / "bad.mtp").write_bytes(damaged)
        self.assertIn("bad.mtp", self.tool("mtp-run", "bad.mtp", "--inputs", "x.npz", code=1).stderr)

    def test_random_inputs_are_saved_and_repeat(self):
        self.run_model("--random-inputs=7", "--save-inputs", "1.npz", "--mesh", "tp=4")
        self.run_model("--random-inputs=7", "--save-inputs", "2.npz")
        self.run_model("--random-inputs=8", "--save-inputs", "3.npz")
        first, second, third = ((self.folder / f"{i}.npz").read_bytes() for i in (1, 2, 3))
        self.assertEqual(first, second)
        self.assertNotEqual(first, third)

    def test_inputs_by_name_and_output_folder(self):
        np.save(self.folder / "x=1.npy", self.x)
        (self.folder / "x.npy").write_bytes((self.folder / "x=1.npy").read_bytes())
        self.run_model("--input", "x=x.npy", "--output-dir", "out")
        index = json.loads((self.folder / "out/index.json").read_text())
        self.assertEqual(index["a/y"]["file"], "a%2Fy.npy")
        self.assertEqual(np.load(self.folder / "out/a%2Fy.npy").shape, (2, 3))

    def test_bad_inputs_are_named(self):
        cases = {"z": (dict(x=self.x, z=self.x), "z"), "none": (dict(), "x"), "rank": (dict(x=self.x[0]), "x"),
                 "dims": (dict(x=self.x[:1]), "x"), "type": (dict(x=self.x.astype(np.int64)), "x")}
        for name, (arrays, word) in cases.items():
            np.savez(self.folder / "bad.npz", **arrays)
            done = self.run_model("--inputs", "bad.npz", "--outputs", "y.npz", "--json", "r.json", code=1)
            self.assertIn(f"'{word}'", done.stderr)
            self.assertEqual(json.loads((self.folder / "r.json").read_text())["error"]["code"], 1)
        self.assertIn("twice", self.run_model("--inputs", "x.npz", "--inputs", "x.npz", code=2).stderr)
        self.assertIn("no.npz", self.run_model("--inputs", "no.npz", code=1).stderr)
        self.assertFalse((self.folder / "y.npz").exists())

    def test_sizes_of_a_dimension_must_have_the_given_one(self):
        self.run_model("--inputs", "x.npz", "--dim", "batch=1,2")
        self.assertIn("batch", self.run_model("--inputs", "x.npz", "--dim", "batch=1,3", code=1).stderr)

    def test_several_sizes_make_one_artifact(self):
        self.tool("mtp-compile", "tiny.onnx", "--dim", "batch=1,2,5", "--mesh", "tp=2", "-o", "m.mtp")
        for batch in (1, 2, 5):
            x = np.arange(8 * batch, dtype=np.float32).reshape(batch, 8)
            np.savez(self.folder / "x.npz", x=x)
            self.tool("mtp-run", "m.mtp", "--inputs", "x.npz", "--outputs", "y.npz")
            np.testing.assert_allclose(self.output(), x @ WEIGHTS, rtol=1e-5)
        np.savez(self.folder / "x.npz", x=np.zeros((3, 8), np.float32))
        done = self.tool("mtp-run", "m.mtp", "--inputs", "x.npz", code=1)
        self.assertIn("[1, 8], [2, 8], [5, 8], given is [3, 8]", done.stderr)
        whole = (self.folder / "m.mtp").read_bytes()
        for cut in (3, 10, 20, 500, len(whole) - 1):
            (self.folder / "cut.mtp").write_bytes(whole[:cut])
            self.tool("mtp-run", "cut.mtp", "--inputs", "x.npz", code=1)
        (self.folder / "long.mtp").write_bytes(whole + b"x")
        self.tool("mtp-run", "long.mtp", "--inputs", "x.npz", code=1)
        many = ",".join(map(str, range(65)))
        self.tool("mtp-compile", "tiny.onnx", "--dim", f"batch={many}", "-o", "m.mtp", code=2)

    def test_without_inputs_only_the_explanation_is_given(self):
        done = self.run_model("--explain")
        self.assertIn("nothing is run", done.stderr)
        self.assertIn("'x'", self.run_model(code=1).stderr)

    def test_missing_compiler_is_exit_6(self):
        done = self.run_model("--inputs", "x.npz", code=6, MTP_COMPILER_LIBRARY="/nonexistent.so")
        self.assertIn("the compiler is not present", done.stderr)

    def test_results_that_cannot_be_written_are_said_before_the_work(self):
        for option in ("--outputs", "--save-inputs", "--report"):
            done = self.run_model("--inputs", "missing.npz", option, "nowhere/y.npz", code=1)
            self.assertIn("cannot write 'nowhere/y.npz'", done.stderr)
        done = self.tool("mtp-compile", "missing.onnx", "-o", "nowhere/a.mtp", code=1)
        self.assertIn("cannot write 'nowhere/a.mtp'", done.stderr)

    def test_capabilities(self):
        facts = json.loads(self.tool("mtp-run", "--capabilities").stdout)
        mpi = ["mpi"] if (BIN.parent / "lib/libmtp-mpi.so").exists() else []
        self.assertEqual(facts, {"communicators": ["threads", *mpi, "nccl", "loopback"], "devices": ["cpu", "cuda", "cuda-emulated"],
                                 "ops": ["Add", "MatMul"]})

    def interrupt(self, number, *arguments, **environment):
        process = subprocess.Popen(self.command("mtp-run", ["tiny.onnx", "--inputs", "x.npz", "--outputs", "y.npz",
                                                            "--json", "r.json", *arguments]),
                                   cwd=self.folder, env={**self.environment, **environment}, stderr=subprocess.PIPE)
        time.sleep(1.5)
        process.send_signal(number)
        start = time.time()
        process.communicate(timeout=60)
        self.assertLess(time.time() - start, 10)
        self.assertEqual(process.returncode, 128 + number)
        self.assertFalse((self.folder / "y.npz").exists())
        self.assertEqual({path.name for path in self.folder.iterdir()} - {"r.json"}, {"tiny.onnx", "x.npz"})

    def test_signals_end_all_ranks(self):
        self.interrupt(signal.SIGINT, "--mesh", "tp=2", "--bench=60")
        self.interrupt(signal.SIGTERM, "--mesh", "tp=4", "--bench=60")
        self.interrupt(signal.SIGINT, TINY_STALL="1")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

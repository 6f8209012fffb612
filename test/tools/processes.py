#!/usr/bin/env python3
# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranks as processes: the same results as threads, and an end for all if one fails.

    processes.py BIN MODELS

Every run is waited for; what is left of it afterwards is an error.
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

BIN, MODELS = Path(sys.argv[1]), Path(sys.argv[2])
MODEL = MODELS / "gpt2-ts"
INPUTS = ["--inputs", MODEL / "inputs.npz"]
TRAINING = ["--train", "--loss", "cross_entropy:logits=logits,labels=labels", "--steps", "3", "--clip-norm", "1"]
# For those who call mpirun themselves here: --launch gives these, too.
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_hwloc_base_binding_policy="none")


def command(*arguments, before=()):
    return [str(word) for word in [*before, BIN / "mtp-run", MODEL / "model.onnx", *arguments]]


def ranks_of(marker):
    """Process ids of the ranks whose command line has `marker`, by rank."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if str(marker).encode() not in (folder / "cmdline").read_bytes():
                continue
            environment = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        for entry in environment:
            if entry.startswith(b"OMPI_COMM_WORLD_RANK="):
                found[int(entry.split(b"=")[1])] = int(folder.name)
    return found


class Processes(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def run_model(self, *arguments, code=0, before=()):
        done = subprocess.run(command(*arguments, before=before), cwd=self.folder, capture_output=True, text=True,
                              env=ENVIRONMENT, timeout=120)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def report(self, name="r.json"):
        return json.loads((self.folder / name).read_text())

    def same(self, *names):
        for name in names:
            self.assertEqual((self.folder / ("threads-" + name)).read_bytes(), (self.folder / name).read_bytes(), name)

    def test_forward_has_the_bits_of_threads(self):
        self.run_model("--mesh", "tp=2", *INPUTS, "--outputs", "threads-y.npz", "--json", "threads.json")
        done = self.run_model("--mesh", "tp=2", *INPUTS, "--outputs", "y.npz", "--launch", 2, "--comm", "mpi",
                              "--json", "r.json", "--check")
        self.same("y.npz")
        self.assertEqual(done.stdout.count("Agreement with one rank"), 1)
        threads, report = self.report("threads.json"), self.report()
        self.assertEqual(report["comm"], "mpi")
        self.assertEqual(report["collectives"], threads["collectives"])
        self.assertGreater(len(report["collectives"]), 0)
        self.assertGreater(report["step_ms"]["max"], 0)

    def test_training_on_four_processes_has_the_bits_of_threads(self):
        arguments = ["--mesh", "dp=2,tp=2", *INPUTS, "--input", f"labels={self.labels()}", *TRAINING, "--zero", "1"]
        files = ["g.npz", "p.npz"]
        self.run_model(*arguments, "--dump-grads", "threads-g.npz", "--dump-params", "threads-p.npz",
                       "--json", "threads.json", "--quiet")
        self.run_model(*arguments, "--dump-grads", "g.npz", "--dump-params", "p.npz", "--json", "r.json", "--quiet",
                       "--comm", "mpi", before=["mpirun", "-n", 4])
        self.same(*files)
        self.assertEqual(self.report()["loss"], self.report("threads.json")["loss"])
        self.assertEqual(self.report()["grad_norm"], self.report("threads.json")["grad_norm"])
        self.assertEqual(self.report()["collectives"], self.report("threads.json")["collectives"])

    def test_nccl_between_processes_has_the_bits_of_one_process(self):
        """Through the software driver, whose NCCL works between processes as well."""
        arguments = ["--device", "cuda-emulated", "--comm", "nccl", "--mesh", "tp=2", *INPUTS,
                     "--input", f"labels={self.labels()}", *TRAINING, "--quiet"]
        before = set(Path("/dev/shm").glob("mtp-nccl-*"))
        self.run_model(*arguments, "--dump-params", "threads-p.npz", "--json", "threads.json")
        self.run_model(*arguments, "--dump-params", "p.npz", "--json", "r.json", "--launch", 2)
        self.same("p.npz")
        threads, report = self.report("threads.json"), self.report()
        self.assertEqual((report["comm"], report["loss"]), ("nccl", threads["loss"]))
        self.assertEqual(report["collectives"], threads["collectives"])
        self.assertEqual(set(Path("/dev/shm").glob("mtp-nccl-*")) - before, set())

    def labels(self):
        import numpy as np
        labels = np.load(MODEL / "labels.npz")
        np.save(self.folder / "labels.npy", labels[labels.files[0]])
        return self.folder / "labels.npy"

    def test_a_world_that_differs_from_the_mesh_exits_with_2(self):
        done = self.run_model("--mesh", "tp=4", *INPUTS, "--comm", "mpi", code=2, before=["mpirun", "-n", 2])
        self.assertEqual(done.stderr.count("there are 2 processes, but the mesh tp=4 has 4 ranks"), 1, done.stderr)
        done = self.run_model("--mesh", "tp=4", *INPUTS, "--comm", "mpi", "--launch", 2, code=2)
        self.assertIn("there are 2 processes, but the mesh tp=4 has 4 ranks", done.stderr)

    def test_processes_that_all_run_the_same_are_warned(self):
        done = self.run_model("--mesh", "tp=2", *INPUTS, "--comm", "threads", "--json", "r.json", before=["mpirun", "-n", 2])
        self.assertEqual(done.stderr.count("each of the 2 processes that were started runs all ranks"), 1, done.stderr)

    def test_an_error_is_said_once(self):
        done = self.run_model("--mesh", "tp=2", "--input", "input_ids=/nowhere.npy", "--comm", "mpi", "--launch", 2,
                              "--json", "r.json", code=1)
        self.assertEqual(done.stderr.count("/nowhere.npy"), 1, done.stderr)
        self.assertNotIn("mpirun", done.stderr)
        self.assertEqual(self.report()["error"]["code"], 1)

    def started(self, *arguments, comm=("--comm", "mpi")):
        """A run that goes on for a minute, and its ranks, which have begun."""
        errors = self.folder / "errors"
        with errors.open("w") as file:
            run = subprocess.Popen(command("--mesh", "tp=2", *INPUTS, *comm, "--launch", 2, "--bench=60", "--verbose",
                                           "--json", self.folder / "r.json", *arguments),
                                   cwd=self.folder, stdout=subprocess.DEVNULL, stderr=file)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        until = time.time() + 60
        while "2 ranks of" not in errors.read_text():
            self.assertTrue(run.poll() is None and time.time() < until, errors.read_text())
            time.sleep(0.05)
        ranks = ranks_of(self.folder / "r.json")
        self.assertEqual(sorted(ranks), [0, 1])
        return run, ranks

    def ends(self, run, code, seconds):
        begin = time.time()
        run.wait(timeout=60)
        errors = (self.folder / "errors").read_text()
        self.assertEqual(run.returncode, code, errors)
        self.assertLess(time.time() - begin, seconds)
        until = time.time() + 10
        while ranks_of(self.folder / "r.json") and time.time() < until:
            time.sleep(0.05)
        self.assertEqual(ranks_of(self.folder / "r.json"), {}, "ranks are left")
        return errors

    def failures(self, errors):
        """What is said once the ranks have begun."""
        return errors.split("2 ranks of")[-1].splitlines()[1:]

    def test_a_killed_rank_ends_all_with_4(self):
        nccl = ("--device", "cuda-emulated", "--comm", "nccl")
        for victim, comm in ((0, nccl), (1, ("--comm", "mpi"))):
            run, ranks = self.started(comm=comm)
            os.kill(ranks[victim], signal.SIGKILL)
            errors = self.ends(run, 4, 30)
            self.assertEqual(errors.count("error:"), 1, errors)
            self.assertIn(f"rank {victim} was ended by signal 9", errors)
        # The last victim was not the one that writes.
        self.assertEqual(self.report()["error"]["code"], 4)

    def test_a_rank_that_stands_still_is_named_within_the_timeout(self):
        run, ranks = self.started("--collective-timeout", "1")
        os.kill(ranks[1], signal.SIGSTOP)
        errors = self.ends(run, 4, 40)
        self.assertEqual(errors.count("error:"), 1, errors)
        self.assertRegex(errors, "missing: rank 1")

    def test_an_interrupt_ends_all_with_130(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            run, _ = self.started()
            run.send_signal(number)
            errors = self.ends(run, code, 30)
            self.assertEqual(self.failures(errors), [f"mtp-run: error: ended by signal {int(number)}"])
            self.assertEqual(self.report()["error"]["code"], code)

    def test_what_fails_because_of_an_interrupt_is_not_said(self):
        run, ranks = self.started()
        run.send_signal(signal.SIGINT)
        os.kill(ranks[1], signal.SIGKILL)
        self.assertEqual(self.failures(self.ends(run, 130, 30)), ["mtp-run: error: ended by signal 2"])

    def test_an_artifact_is_refused_before_a_process_starts(self):
        program = self.folder / "model.mtp"
        subprocess.run([BIN / "mtp-compile", MODEL / "model.onnx", "-o", program, "--mesh", "tp=2", "--quiet"], check=True)
        for arguments, reason in ((("--launch", "2"), "communicator threads has all ranks in one: give --comm mpi"),
                                  (("--launch", "3", "--comm", "mpi"),
                                   "--launch 3: there are 3 processes, but the mesh tp=2 has 2 ranks")):
            # Without mpirun: to start it would be exit 6.
            done = subprocess.run([str(word) for word in (BIN / "mtp-run", program, *arguments, *INPUTS)], capture_output=True,
                                  text=True, env={"PATH": "/nowhere"}, timeout=60)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(reason, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""lit tests of mtp. Run them with `ninja -C build check-mtp`, or one folder with
`lit-22 build/test/dialect`."""

import os

import lit.formats

config.name = "mtp"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "models", "unit"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.mtp_build, "test")
config.environment["PATH"] = os.pathsep.join(
    [os.path.join(config.mtp_build, "bin"), config.llvm_tools, os.environ["PATH"]])
# No calibration of the user: plans are made with the default costs.
config.environment["XDG_CONFIG_HOME"] = os.path.join(config.mtp_build, "test", "config")
# Compiled objects of a test run are kept with the build.
config.environment["XDG_CACHE_HOME"] = os.path.join(config.mtp_build, "test", "cache")
for name in ("ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS", "TERM"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

config.substitutions += [
    ("%models", os.path.join(config.test_source_root, "models")),
    ("%python", f'"{config.python}"'),
    # %exits CODE command...: succeeds if the command ends with CODE.
    ("%exits", f'"{config.python}" {os.path.join(config.test_source_root, "exits.py")}'),
]

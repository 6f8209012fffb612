#!/usr/bin/env python3
# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""exits.py CODE command...: succeeds if the command ends with exit code CODE."""

import subprocess
import sys

wanted, command = int(sys.argv[1]), sys.argv[2:]
code = subprocess.run(command).returncode
if code != wanted:
    sys.exit(f"exit code {code} instead of {wanted}: {' '.join(command)}")

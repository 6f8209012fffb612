# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Costs of one plan: chosen, read from its file, and read for slower links."""

import json
import sys

chosen, read, slow = (json.load(open(path)) for path in sys.argv[1:])
assert chosen["ops"] == read["ops"] == slow["ops"]
assert chosen["cost_us"] == read["cost_us"], (chosen["cost_us"], read["cost_us"])
assert slow["cost_us"] > 2 * read["cost_us"], (read["cost_us"], slow["cost_us"])

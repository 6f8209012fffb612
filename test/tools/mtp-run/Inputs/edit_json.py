# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""edit_json.py IN OUT PATH [VALUE]: sets one place of a file, "ops.3.name", to a
JSON value, or takes it out."""

import json
import sys
from pathlib import Path

source, target, path, *value = sys.argv[1:]
whole = place = json.loads(Path(source).read_text())
*outer, last = [int(key) if key.lstrip("-").isdigit() else key for key in path.split(".")]
for key in outer:
    place = place[key]
if value:
    place[last] = json.loads(value[0])
else:
    del place[last]
Path(target).write_text(json.dumps(whole))

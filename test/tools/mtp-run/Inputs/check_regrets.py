# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Regrets of an explanation under a limit of bytes: every choice has a time, a reason or bytes above the limit."""

import json
import sys

explain = json.load(open(sys.argv[1]))
limit = explain["layout_limit"]
assert 0 < limit["used"] <= limit["bytes"], limit
times = 0
for op in explain["choices"]:
    chosen, *others = op["strategies"]
    assert chosen["regret_us"] == 0 and not chosen["is_bound"], op["name"]
    for other in others:
        regret, needed = other["regret_us"], other["needed_bytes"]
        assert (regret is None) == bool(other["why"]), other
        assert regret is None or regret >= 0, other
        assert needed is None or (needed > limit["bytes"] and regret is None), other
        times += regret is not None
    # The runner-up is searched for until it is known.
    assert not others or not others[0]["is_bound"], op["name"]
assert times > 100, times
for collective in explain["collectives"]:
    assert collective["runner_up"] and not collective["is_bound"], collective

#!/usr/bin/env python3
# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Add up JUnit files: names what failed, then prints `N passed, N failed`.

    summarize.py FILE...    a missing or empty file counts as one failure
"""

import sys
import xml.etree.ElementTree as xml
from pathlib import Path


def results(path):
    """(name, state) of each test in a JUnit file."""
    try:
        cases = list(xml.parse(path).getroot().iter("testcase"))
    except (OSError, xml.ParseError) as problem:
        return [(f"{path}: {problem}", "failed")]
    found = []
    for case in cases:
        name = f"{case.get('classname', '')}: {case.get('name', '')}"
        if case.find("failure") is not None or case.find("error") is not None:
            found.append((name, "failed"))
        elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            found.append((name, "skipped"))
        else:
            found.append((name, "passed"))
    return found or [(f"{path}: no test was run", "failed")]


def main():
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for path in map(Path, sys.argv[1:]):
        listed = results(path)
        own = [state for _, state in listed]
        print(f"  {path.stem:<16} {own.count('passed'):5} passed, {own.count('failed')} failed"
              + (f", {own.count('skipped')} skipped" if "skipped" in own else ""))
        for name, state in listed:
            counts[state] += 1
            if state == "failed":
                print(f"    FAILED {name}")
    skipped = f", {counts['skipped']} skipped" if counts["skipped"] else ""
    print(f"{counts['passed']} passed, {counts['failed']} failed{skipped}", flush=True)
    sys.exit(1 if counts["failed"] or not counts["passed"] else 0)


if __name__ == "__main__":
    main()

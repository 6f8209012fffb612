#!/usr/bin/env python3
# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules on the sources that no compiler checks; writes the results as JUnit XML."""

import argparse
import re
import subprocess
import sys
from pathlib import Path
from xml.sax.saxutils import quoteattr

ROOT = Path(__file__).resolve().parent.parent
# What is generic over the sharding rules must name no op: files whose path matches.
GENERIC = re.compile(r"(^|/)(mtp-partition|Partition|mtp-differentiate)[^/]*\.(cpp|h)$|^compiler/autodiff/"
                     r"|^dialects/mtp/(VerifyLayout|CaseSearch|InferLayout)[^/]*$")
# Structure of a module, not computation.
STRUCTURE = "MtpModuleOps.td"
CODE = (".h", ".cpp", ".td", ".inc", ".py", ".sh", ".cmake", ".proto")
LONGEST = 600


def tracked():
    """Paths of all files that git knows or would add, relative to the root."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"],
                            cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return sorted(path for path in set(listed.splitlines()) if (ROOT / path).is_file())


def read(path):
    return (ROOT / path).read_text(errors="replace")


def generic_sources_name_no_op(files):
    names = set()
    for path in files:
        if path.startswith("dialects/mtp/") and path.endswith(".td") and not path.endswith(STRUCTURE):
            for definition, mnemonic in re.findall(r"def Mtp_(\w+Op) : Mtp_\w+<\"([\w.]+)\"", read(path)):
                names |= {definition, f"mtp.{mnemonic}"}
    if len(names) < 20:
        yield f"found only {len(names)} names of ops in dialects/mtp/*.td"
    matched = [path for path in files if GENERIC.search(path)]
    for part in ("mtp-partition", "VerifyLayout", "mtp-differentiate", "autodiff/Differentiate"):
        if not any(part in path for path in matched):
            yield f"the sources of {part} are not where this check looks"
    for path in matched:
        for number, line in enumerate(read(path).splitlines(), 1):
            code = line.split("//")[0]
            # Partition makes spmd ops, some of which have the name of an mtp op.
            for name in re.findall(r"[A-Za-z_][\w.:]*", code):
                if not name.startswith("spmd::") and name.split("::")[-1] in names:
                    yield f"{path}:{number} names {name}"


def files_have_a_license_header(files):
    for path in files:
        if not path.endswith(CODE) and Path(path).name != "CMakeLists.txt":
            continue
        if "SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception" not in "\n".join(read(path).splitlines()[:4]):
            yield f"{path} has no SPDX header"


def files_are_short(files):
    for path in files:
        if path.endswith((".h", ".cpp", ".td", ".inc")):
            lines = len(read(path).splitlines())
            if lines >= LONGEST:
                yield f"{path} has {lines} lines; less than {LONGEST} are allowed"


def runtime_includes_no_compiler(files):
    for path in files:
        if not path.endswith((".h", ".cpp", ".inc")):
            continue
        for include in re.findall(r'^#include ["<]([^">]+)', read(path), re.M):
            if path.startswith("runtime/") and include.startswith(("compiler/", "dialects/", "mlir/", "llvm/")):
                yield f"{path} includes {include}"
            if path.startswith("dialects/") and include.startswith("compiler/"):
                yield f"{path} includes {include}"


def passes_are_tested_and_described(files):
    for path in files:
        if not path.endswith("Passes.td"):
            continue
        for definition in re.split(r"^def ", read(path), flags=re.M)[1:]:
            flag = re.search(r'Pass<"([\w-]+)"', definition)
            if not flag:
                continue
            name = flag.group(1)
            if not any(re.search(rf"^test/.*/{name}[\w-]*(\.mlir|/)", other) for other in files):
                yield f"pass {name} has no lit test of its name"
            for word in ("let summary", "let description"):
                if word not in definition:
                    yield f"pass {name} has no {word[4:]}"


def no_paths_of_one_machine(files):
    for path in files:
        if path.startswith("test/models/") and not path.endswith(".py"):
            continue
        if path == "scripts/check_sources.py":
            continue
        for number, line in enumerate(read(path).splitlines(), 1):
            if re.search(r"(?<![\w.$}/])/(work|opt|home|root)/\w", line):
                yield f"{path}:{number} names a folder of one machine"


CHECKS = [generic_sources_name_no_op, files_have_a_license_header, files_are_short,
          runtime_includes_no_compiler, passes_are_tested_and_described, no_paths_of_one_machine]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--junit", help="write the results as XML")
    options = parser.parse_args()
    files, cases, failed = tracked(), [], 0
    for check in CHECKS:
        problems = list(check(files))
        failed += bool(problems)
        for problem in problems:
            print(f"{check.__name__}: {problem}")
        body = f"<failure message={quoteattr('; '.join(problems[:20]))}/>" if problems else ""
        cases.append(f'<testcase classname="sources" name="{check.__name__}">{body}</testcase>')
    if options.junit:
        Path(options.junit).write_text('<testsuite name="sources">\n' + "\n".join(cases) + "\n</testsuite>\n")
    print(f"sources: {len(CHECKS) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

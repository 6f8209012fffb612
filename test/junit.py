# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results of tests as JUnit XML, which scripts/summarize.py adds up."""

from xml.sax.saxutils import quoteattr


def write(path, suite, results):
    """`results`: name, problem ("" if it passed) and seconds of each test."""
    with open(path, "w") as out:
        out.write(f'<testsuite name="{suite}" tests="{len(results)}">\n')
        for name, problem, seconds in results:
            out.write(f'<testcase classname="{suite}" name={quoteattr(name)} time="{seconds:.2f}">')
            if problem:
                out.write(f"<failure message={quoteattr(problem)}/>")
            out.write("</testcase>\n")
        out.write("</testsuite>\n")

# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks a page of --report: check_report.py PAGE [EXPLANATION].

The page is well-formed, loads nothing and runs nothing; its pictures are XML; with
the explanation of the same run: every weight and every collective stands in it."""

import html.parser
import json
import re
import sys
import xml.etree.ElementTree as xml

VOID = {"meta", "br"}


class Page(html.parser.HTMLParser):
    """Every element that is opened is closed, in order."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.text, self.tags = [], [], set()

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        for name, value in attributes:
            assert name not in ("src", "href", "onload", "onclick", "srcset"), (tag, name, value)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data):
        self.text.append(data)


def main(page, explanation=None):
    text = open(page, encoding="utf-8").read()
    parsed = Page()
    parsed.feed(text)
    parsed.close()
    assert not parsed.open, parsed.open
    assert "script" not in parsed.tags and "link" not in parsed.tags and "img" not in parsed.tags
    assert "@import" not in text and "url(" not in text
    without_names = text.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://", without_names), "the page refers to a network"
    pictures = re.findall(r"<svg.*?</svg>", text, re.S)
    for picture in pictures:
        root = xml.fromstring(picture)
        assert float(root.get("width")) > 0 and float(root.get("height")) > 0
    words = "".join(parsed.text)
    collectives = 0
    if explanation:
        explain = json.load(open(explanation))
        for weight in explain.get("weights", []):
            assert weight["name"] in words, weight["name"]
        for function in explain["graph"]:
            for op in function["ops"]:
                if op.get("conversion", {}).get("kind"):
                    collectives += 1
                    assert op["name"] in words, op["name"]
        said = re.search(r"(\d+) a step, ", words)
        assert (int(said.group(1)) if said else 0) == collectives, (said, collectives)
    print(f"{len(pictures)} pictures, {collectives} collectives")


main(*sys.argv[1:])

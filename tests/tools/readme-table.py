#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""readme-table.py REPORT.html: the first headline of each component as a table of Markdown, for README.md.

README.md has it between two comments that name the run; tests/cli/report.bats holds it against the report of that run.
"""
import html.parser
import sys


class Headlines(html.parser.HTMLParser):
    """Texts of the table of headlines, by row and by the class of what they stand in."""

    def __init__(self):
        super().__init__()
        self.inside = False
        self.classes = []
        self.rows = []

    def handle_starttag(self, tag, attributes):
        name = dict(attributes).get("class") or ""
        if tag == "table":
            self.inside = "headlines" in name.split()
        elif self.inside and tag == "tr":
            self.rows.append({})
        elif self.inside and tag in ("th", "div"):
            self.classes.append((tag, name.split()[0] if name else ""))

    def handle_endtag(self, tag):
        if tag == "table":
            self.inside = False
        elif self.classes and self.classes[-1][0] == tag:
            self.classes.pop()

    def handle_data(self, data):
        if self.inside and self.rows and self.classes:
            row, name = self.rows[-1], self.classes[-1][1]
            row[name] = row.get(name, "") + data


def share_of(text):
    percent = text.split(" of ")[0] if " of " in text else ""
    return "(" + percent + " of a reference)" if "reference" in text else percent


def main():
    page = Headlines()
    with open(sys.argv[1], encoding="utf-8") as file:
        page.feed(file.read())
    print("| component | test | value | 95 % interval | of the limit | verdict |")
    print("|---|---|---:|---:|---:|---|")
    for row in page.rows:
        if not row.get("pipe") or "verdict" not in row:
            continue
        word = row["verdict"].replace(";", ":").split(":")[0].split(",")[0]
        if len(word) > 12 or "%" in word:
            word = "not judged"
        cells = [row["pipe"], row["label"], row["value"], row["interval"], share_of(row["share"]), word]
        print("| " + " | ".join(cell.strip() for cell in cells) + " |")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""The lines of a model's file (configs/models), for the peers and checks of a training step."""
import csv


def tensors(path):
    """(numbers, operations forward, operations backward) of a sample, of each line; blocks are repeated. ValueError: experts or
    tables, whose gradients are not summed over all ranks; or sizes that depend on the length of a sequence."""
    rows, names = [], None
    with open(path, encoding="utf-8") as lines:
        for line in csv.reader(text for text in lines if not text.startswith("#")):
            if names is None:
                names = line if line[:2] == ["block", "layer"] else None
            elif line:
                rows.append(dict(zip(names, line)))
    out, at = [], 0
    while at < len(rows):
        end = at
        while end < len(rows) and rows[end]["block"] == rows[at]["block"]:
            end += 1
        first, _, last = rows[at]["block"].partition("..")
        out += [one(row) for row in rows[at:end]] * (int(last or first) - int(first) + 1)
        at = end
    return out


def one(row):
    def cell(name, default):
        return int(row.get(name) or default)

    if row.get("kind"):
        raise ValueError("experts and tables are not summed by data parallelism alone")
    product = 2 * cell("m", 0) * cell("n", 0) * cell("k", 0) * cell("count", 1)
    return cell("parameters", 0), product, product * cell("backward", 2)

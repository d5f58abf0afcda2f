/* SPDX-License-Identifier: Apache-2.0 */
/* A row as JSON and as CSV, read by another program's readers of both (Python's): the same values,
 * whatever is in them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/row.h"
#include "tests/unit/scratch_tree.h"

#define ROWS 40

static const char *const texts[] = {"plain",
                                    "",
                                    "a,b;\"quoted\" 'too'",
                                    "two\nlines\r\nand\ta tab",
                                    "back\\slash \\u0041 \\n",
                                    "\x01\x1f\x7f controls \b\f\v",
                                    "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
                                    "cut \xe2\x82, stray \xff\xc0\x80, half \xed\xa0\x80",
                                    "nan",
                                    "1e5",
                                    "007",
                                    "42",
                                    " ",
                                    "\"",
                                    "a=b|c:d{}[]"};

static double number(unsigned i)
{
    const double all[] = {0.0,     -0.0,           1,   -1.5,     0.1,       1e300, 1e-310,
                          1.0 / 3, 123456789012.0, NAN, INFINITY, -INFINITY, 2e-9,  99999999.5};

    return all[i % (sizeof(all) / sizeof(*all))];
}

static uint64_t whole(unsigned i)
{
    const uint64_t all[] = {0,         1, 7, UINT32_MAX, UINT64_C(1) << 53, (UINT64_C(1) << 53) + 1,
                            UINT64_MAX};

    return all[i % (sizeof(all) / sizeof(*all))];
}

/* Every column has something else, and in another row again. */
static void fill(struct row *row, unsigned seed)
{
    static const char *const names[] = {"text", "number", "word"};

    row_init(row);
    row->param_names = names;
    row->n_params = 3;
    row->params[0] = texts[seed % (sizeof(texts) / sizeof(*texts))];
    row->params[1] = seed % 3 ? "18446744073709551615" : "auto";
    row->param_counts[1] = true;
    row->params[2] = "12";
    for (const struct row_column *c = row_columns; c->name; c++, seed++) {
        char *at = (char *)row + c->offset;
        if (c->kind == ROW_TEXT)
            *(const char **)at = texts[seed % (sizeof(texts) / sizeof(*texts))];
        else if (c->kind == ROW_COUNT)
            *(uint64_t *)at = whole(seed);
        else
            *(double *)at = number(seed);
    }
}

/* What is not finite is no number of JSON, and is left out; bytes that are no character are "?". */
static const char reader[] =
    "import csv, json, math, sys\n"
    "csv.field_size_limit(1 << 30)\n"
    "read = lambda name: open(name, newline='', encoding='utf-8', errors='surrogateescape')\n"
    "cells = list(csv.DictReader(read('rows.csv')))\n"
    "lines = open('rows.json', 'rb').read().decode('utf-8').split('\\n')\n"
    "assert lines.pop() == '' and len(lines) == len(cells) == int(sys.argv[1]), len(lines)\n"
    "strict = lambda word: sys.exit('not JSON: ' + word)\n"
    "for line, cell in zip(lines, cells):\n"
    "    pairs = json.loads(line, parse_constant=strict, object_pairs_hook=list)\n"
    "    row = dict(pairs)\n"
    "    assert len(row) == len(pairs) and row.pop('bench') == 'made-up'\n"
    "    assert list(row) == [n for n in cell if n in row], 'order'\n"
    "    for name, text in cell.items():\n"
    "        if text in ('', 'inf', '-inf') and (text == '' or name not in row):\n"
    "            assert name not in row, (name, text)\n"
    "            continue\n"
    "        value = row[name]\n"
    "        if isinstance(value, str):\n"
    "            known = ''.join('?' if '\\udc80' <= c <= '\\udcff' else c for c in text)\n"
    "            assert value == known, (name, value, text)\n"
    "        elif isinstance(value, int):\n"
    "            assert value == (int(text) if text.lstrip('-').isdigit() else float(text)), "
    "(name, value, text)\n"
    "        else:\n"
    "            assert math.copysign(1, value) == math.copysign(1, float(text))\n"
    "            assert value == float(text), (name, value, text)\n"
    "    assert isinstance(row['word'], str)\n"
    "    assert isinstance(row['number'], str if row['number'] == 'auto' else int)\n";

static void the_same_values(void **state)
{
    struct scratch s;
    char path[600], command[1300];
    struct row row;

    (void)state;
    if (system("python3 -c pass") != 0) {
        print_message("there is no python3\n");
        skip();
    }
    scratch_open(&s);
    snprintf(path, sizeof(path), "%s/rows.csv", s.root);
    FILE *csv = fopen(path, "w");
    snprintf(path, sizeof(path), "%s/rows.json", s.root);
    FILE *json = fopen(path, "w");
    assert_true(csv && json);
    for (unsigned i = 0; i < ROWS; i++) {
        fill(&row, i);
        if (!i)
            row_print_csv_header(csv, row.param_names, row.n_params);
        row_print_csv(csv, &row);
        row_print_json(json, "made-up", &row);
    }
    fclose(csv);
    fclose(json);
    scratch_put(&s, "read.py", reader);
    snprintf(command, sizeof(command), "cd '%s' && python3 read.py %d", s.root, ROWS);
    assert_int_equal(system(command), 0);
    scratch_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_same_values)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

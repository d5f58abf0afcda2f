/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of rows: built from the JSON in the page, sorted and filtered here. Only the rows in
 * view are elements of the page, so that ten thousand stay usable.
 */
"use strict";
(() => {
    const FIRST = 50, MORE = 500;
    /* What a reader wants first; the other columns appear on demand. */
    const USUAL = new Set(["metric", "value", "unit", "ci_low", "ci_high", "percent_of_limit",
                           "origin", "status", "reason", "disturbed", "repeat"]);
    const WORDY = new Set(["reason", "disturbed", "evidence", "limit_source"]);

    const data = JSON.parse(document.getElementById("data").textContent);

    const make = (name, attributes, ...children) => {
        const element = document.createElement(name);
        for (const [key, value] of Object.entries(attributes || {}))
            element.setAttribute(key, value);
        element.append(...children);
        return element;
    };

    const number = (text) => (text === "" ? NaN : Number(text));

    /* A column is a number's when every cell that is not empty is one. */
    const isNumeric = (rows, index) => {
        let any = false;
        for (const row of rows) {
            if (row[index] === "")
                continue;
            if (Number.isNaN(Number(row[index])))
                return false;
            any = true;
        }
        return any;
    };

    /* Empty cells, which were not measured, come last in either direction. */
    const comparer = (column, direction) => (a, b) => {
        const x = a[column.index], y = b[column.index];
        if (x === "" || y === "")
            return (x === "") - (y === "");
        if (column.numeric)
            return direction * (number(x) - number(y));
        return direction * (x < y ? -1 : x > y ? 1 : 0);
    };

    const OPERATORS = {
        "=": (cell, text) => cell.toLowerCase() === text ||
                             (text !== "" && cell !== "" && number(cell) === number(text)),
        "!=": (cell, text) => !OPERATORS["="](cell, text),
        ">": (cell, text) => number(cell) > number(text),
        "<": (cell, text) => number(cell) < number(text),
        ">=": (cell, text) => number(cell) >= number(text),
        "<=": (cell, text) => number(cell) <= number(text),
    };

    const makeTest = (word, columns, same) => {
        const parts = /^([a-z0-9_]+)(!=|>=|<=|=|>|<)(.*)$/.exec(word);
        const column = parts && columns.find((c) => c.name === parts[1]);
        if (column)
            return (row) => OPERATORS[parts[2]](row[column.index], parts[3]);
        const fixed = parts && same.find(([name]) => name === parts[1]);
        if (fixed)
            return () => OPERATORS[parts[2]](fixed[1], parts[3]);
        return (row) => row.some((cell) => String(cell).toLowerCase().includes(word));
    };

    /* Six digits are enough to read; the cell's title has them all. */
    const shorter = (text) => (/^-?\d*\.\d+$/.test(text) && text.replace(/\D/g, "").length > 6
        ? String(Number(Number(text).toPrecision(6))) : text);

    const cellOf = (column, row) => {
        const text = row[column.index];
        const kind = column.numeric ? "number" : WORDY.has(column.name) ? "text" : "";
        const cell = make("td", kind ? { class: kind } : {});
        if (column.name === "status" || (column.name === "origin" && text !== "measured")) {
            const badge = column.name === "status" && /^[a-z]+$/.test(text) ? "status " + text
                                                                            : "badge";
            cell.append(make("span", { class: badge }, text));
        } else {
            cell.append(column.numeric ? shorter(text) : text);
            if (cell.textContent !== text)
                cell.title = text;
        }
        return cell;
    };

    /* Each row begins with the number of its run, which becomes its name where there are several. */
    const columnsOf = (bench) => {
        const columns = bench.columns.map(([name, help, isParameter], i) => ({
            name, help, index: i + 1, numeric: isNumeric(bench.rows, i + 1),
            usual: isParameter === 1 || USUAL.has(name),
        }));
        if (data.runs.length === 1)
            return columns;
        for (const row of bench.rows)
            row[0] = data.runs[row[0]];
        const run = { name: "run", help: "which of the runs", index: 0, numeric: false,
                      usual: true };
        return [run, ...columns.filter((column) => column.name !== "run")];
    };

    const build = (bench) => {
        const columns = columnsOf(bench);
        const state = { sort: null, direction: 1, rows: bench.rows, limit: FIRST, all: false };
        const filter = make("input", { type: "search", placeholder: "filter",
                                       "aria-label": "filter the rows of " + bench.name });
        const every = make("input", { type: "checkbox" });
        const count = make("span", { class: "count", role: "status" });
        const head = make("tr"), body = make("tbody");
        const more = make("button", { class: "more", type: "button" });

        const visible = () => columns.filter((c) => state.all || c.usual);

        const drawHead = () => {
            head.replaceChildren(...visible().map((column) => {
                const button = make("button", { type: "button", title: column.help }, column.name);
                const cell = make("th", { scope: "col", "aria-sort": "none" }, button);
                if (column.numeric)
                    cell.classList.add("number");
                if (state.sort === column)
                    cell.setAttribute("aria-sort",
                                      state.direction > 0 ? "ascending" : "descending");
                button.addEventListener("click", () => {
                    state.direction = state.sort === column ? -state.direction : 1;
                    state.sort = column;
                    update();
                });
                return cell;
            }));
        };

        const drawBody = () => {
            const shown = visible();
            const rows = state.rows.slice(0, state.limit);
            body.replaceChildren(...rows.map((row) =>
                make("tr", {}, ...shown.map((column) => cellOf(column, row)))));
            const left = state.rows.length - rows.length;
            more.hidden = left <= 0;
            more.textContent = `show ${Math.min(left, MORE)} more`;
            count.textContent = (state.rows.length < bench.rows.length
                ? `${state.rows.length} of ${bench.rows.length} rows`
                : `${bench.rows.length} ${bench.rows.length === 1 ? "row" : "rows"}`) + (left > 0 ? `, the first ${rows.length} shown` : "");
        };

        const update = () => {
            const focused = head.contains(document.activeElement)
                ? [...head.children].indexOf(document.activeElement.parentElement) : -1;
            const tests = filter.value.toLowerCase().split(/\s+/).filter((word) => word)
                .map((word) => makeTest(word, columns, bench.same));
            state.rows = bench.rows.filter((row) => tests.every((test) => test(row)));
            if (state.sort)
                state.rows.sort(comparer(state.sort, state.direction));
            drawHead();
            drawBody();
            if (focused >= 0)
                head.children[focused].firstChild.focus();
        };

        filter.addEventListener("input", () => { state.limit = FIRST; update(); });
        every.addEventListener("change", () => { state.all = every.checked; update(); });
        more.addEventListener("click", () => { state.limit += MORE; drawBody(); });
        update();

        const same = bench.same.filter(([, value]) => value !== "");
        const empty = bench.same.filter(([, value]) => value === "").map(([name]) => name);
        return make("section", { "data-bench": bench.name },
            make("h3", {}, bench.name),
            make("p", { class: "same" },
                 same.length ? "The same in all rows: " +
                     same.map(([name, value]) => `${name} ${value}`).join("; ") + ". " : "",
                 empty.length ? "Empty in all rows: " + empty.join(", ") + "." : ""),
            make("div", { class: "tools" }, filter,
                 make("label", {}, every, " all columns"), count),
            make("div", { class: "rows" }, make("table", {}, make("thead", {}, head), body)),
            more);
    };

    document.getElementById("tables").append(...data.benches.map(build));
})();

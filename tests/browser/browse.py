#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks at a report with a headless Chromium, over the DevTools protocol on a pipe.

usage: browse.py REPORT.html CHECK...
Each CHECK is a function below; the first that does not hold ends it with exit code 1.
"""
import base64
import json
import os
import pathlib
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")
TIMEOUT_S = 60


class Browser:
    def __init__(self):
        program = next((p for p in map(shutil.which, NAMES) if p), None)
        if not program:
            sys.exit("there is no chromium")
        self.profile = tempfile.mkdtemp()
        to_read, self.to = os.pipe()
        self.back, from_write = os.pipe()
        high = [os.dup2(fd, fd + 100) for fd in (to_read, from_write)]

        def place_pipes():
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-background-networking", "--disable-component-update",
             "--remote-debugging-pipe", f"--user-data-dir={self.profile}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=place_pipes, close_fds=False, start_new_session=True)
        for fd in (to_read, from_write, *high):
            os.close(fd)
        self.buffer = b""
        self.events = []
        self.last = 0
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
            self.process.wait(10)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self.process.kill()
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def receive(self, deadline):
        while b"\0" not in self.buffer:
            if not select.select([self.back], [], [], max(0, deadline - time.monotonic()))[0]:
                raise RuntimeError("the browser does not answer")
            data = os.read(self.back, 1 << 16)
            if not data:
                raise RuntimeError("the browser is gone")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            answer = self.receive(deadline)
            if answer.get("id") != self.last:
                self.events.append(answer)
                continue
            if "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']['message']}")
            return answer["result"]

    def open(self, path, width=1280, height=900):
        self.events = []
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)
        self.call("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
        deadline = time.monotonic() + TIMEOUT_S
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self.receive(deadline))

    def eval(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"]))
        return result["result"].get("value")


def require(truth, text):
    if not truth:
        sys.exit("not so: " + text)


def column(browser, bench, name):
    """The cells in view of one column of a benchmark's table."""
    return browser.eval(f"""(() => {{
        const section = document.querySelector('[data-bench="{bench}"]');
        const at = [...section.querySelectorAll('th')].findIndex(
            (th) => th.textContent === '{name}');
        return [...section.querySelectorAll('tbody tr')].map((tr) => tr.children[at].textContent);
    }})()""")


def click(browser, bench, name):
    browser.eval(f"""[...document.querySelectorAll('[data-bench="{bench}"] th button')].find(
        (button) => button.textContent === '{name}').click()""")


def filter_by(browser, bench, text):
    browser.eval(f"""(() => {{
        const input = document.querySelector('[data-bench="{bench}"] input[type=search]');
        input.value = {json.dumps(text)};
        input.dispatchEvent(new Event('input'));
    }})()""")


def quiet(browser, path):
    """No error on the console, no request but the page's own, no dialog."""
    browser.open(path)
    browser.eval("document.querySelectorAll('#tables th button').forEach((b) => b.click())")
    for event in browser.events:
        method, params = event.get("method"), event.get("params", {})
        require(method != "Runtime.exceptionThrown", json.dumps(params))
        require(method != "Log.entryAdded" or params["entry"]["level"] != "error",
                json.dumps(params))
        require(method != "Runtime.consoleAPICalled" or params["type"] not in ("error", "assert"),
                json.dumps(params))
        require(method != "Page.javascriptDialogOpening", "a dialog: " + json.dumps(params))
        if method == "Network.requestWillBeSent":
            url = params["request"]["url"]
            require(url.startswith("data:") or url == pathlib.Path(path).resolve().as_uri(),
                    "a request to " + url)


def sorts(browser, path):
    browser.open(path)
    before = column(browser, "memory", "value")
    click(browser, "memory", "value")
    up = [float(x) for x in column(browser, "memory", "value") if x]
    require(len(up) > 10 and up == sorted(up), f"ascending by number: {up[:5]} ...")
    require(up != [float(x) for x in before if x], "the order has changed")
    click(browser, "memory", "value")
    down = [float(x) for x in column(browser, "memory", "value") if x]
    require(down == sorted(down, reverse=True), f"descending by number: {down[:5]} ...")
    require(down[0] > up[-1] or len(up) == len(down), "the largest of all rows comes first")
    require(browser.eval("document.querySelector('[data-bench=memory] th[aria-sort=descending]')"
                         ".textContent") == "value", "the heading says so")
    click(browser, "memory", "op")
    ops = column(browser, "memory", "op")
    require(ops == sorted(ops), "ascending by text")


def empty_cells_come_last(browser, path):
    browser.open(path)
    filter_by(browser, "memory", "size=16384")
    for _ in range(2):
        click(browser, "memory", "percent_of_limit")
        cells = column(browser, "memory", "percent_of_limit")
        filled = [bool(cell) for cell in cells]
        require(True in filled and False in filled, "there are both kinds")
        require(filled == sorted(filled, reverse=True), "not measured is neither low nor high")


def filters(browser, path):
    browser.open(path)
    all_rows = browser.eval("document.querySelector('[data-bench=memory] .count').textContent")
    filter_by(browser, "memory", "op=triad size>60000")
    require(set(column(browser, "memory", "op")) == {"triad"}, "only triad is left")
    require(all(float(x) > 60000 for x in column(browser, "memory", "size")), "only large sizes")
    count = browser.eval("document.querySelector('[data-bench=memory] .count').textContent")
    require(count != all_rows and " of " in count, f"the count says so: {count}")
    filter_by(browser, "memory", "latency")
    require(set(column(browser, "memory", "metric")) == {"latency"}, "a word is looked for")
    filter_by(browser, "memory", "no such word")
    require(column(browser, "memory", "op") == [], "nothing matches")
    filter_by(browser, "memory", "")
    require(browser.eval("document.querySelector('[data-bench=memory] .count').textContent")
            == all_rows, "all are back")


def shows_all_columns(browser, path):
    browser.open(path)
    before = browser.eval("document.querySelectorAll('[data-bench=memory] th').length")
    browser.eval("document.querySelector('[data-bench=memory] input[type=checkbox]').click()")
    after = browser.eval("document.querySelectorAll('[data-bench=memory] th').length")
    require(after > before + 5, f"{before} columns become {after}")


def every_row_is_there(browser, path):
    browser.open(path)
    folder = pathlib.Path(path).parent
    for bench in browser.eval(
            "[...document.querySelectorAll('[data-bench]')].map((s) => s.dataset.bench)"):
        with open(folder / (bench + ".csv"), encoding="utf-8") as rows:
            wanted = sum(1 for _ in rows) - 1
        while browser.eval(f"""(() => {{
            const more = document.querySelector('[data-bench="{bench}"] .more');
            more.click();
            return !more.hidden;
        }})()"""):
            pass
        shown = browser.eval(f"document.querySelectorAll('[data-bench={bench}] tbody tr').length")
        require(shown == wanted, f"{bench}: {shown} of {wanted} rows")


def starts_small(browser, path):
    """However many rows there are, few are elements of the page until they are asked for."""
    browser.open(path)
    require(browser.eval("document.querySelectorAll('#tables tbody tr').length") <= 200,
            "the tables begin with few rows")
    rows = browser.eval("JSON.parse(document.getElementById('data').textContent)"
                        ".benches.reduce((n, b) => n + b.rows.length, 0)")
    require(rows > 10000, f"{rows} rows are in the page")


PLOTS = """[...document.querySelectorAll('figure')].map((figure) => {
    const svg = [...figure.querySelectorAll('svg[role]')].find((s) => s.getBoundingClientRect().width);
    const box = svg ? svg.getBoundingClientRect() : {width: 0, height: 0};
    const drawn = svg ? [...svg.querySelectorAll('g.line use, g.line path')].filter((e) => {
        const b = e.getBoundingClientRect();
        return b.width + b.height > 0;
    }).length : 0;
    return {id: figure.id, width: box.width, height: box.height, drawn,
            texts: svg ? svg.querySelectorAll('text').length : 0,
            shown: figure.querySelectorAll('svg[role]').length};
})"""


def plots_are_there(browser, path):
    for width in (1280, 360):
        browser.open(path, width)
        plots = browser.eval(PLOTS)
        files = {p.stem for p in (pathlib.Path(path).parent / "plots").glob("*.svg")}
        require(plots and {p["id"][len("plot-"):] for p in plots} == files,
                f"a figure for each of {sorted(files)}")
        for plot in plots:
            require(plot["width"] > 250 and plot["height"] > 50, f"it has a size: {plot}")
            require(plot["drawn"] >= 2, f"something is drawn: {plot}")
            require(plot["texts"] >= 4, f"its axes are labelled: {plot}")


def fits_a_phone(browser, path):
    browser.open(path, 360, 800)
    width = browser.eval("document.documentElement.scrollWidth")
    require(width <= 360, f"the page is {width} pixels wide")
    small = browser.eval("""Math.min(...[...document.querySelectorAll('.d-narrow text')]
        .filter((t) => t.textContent.trim())
        .map((t) => t.getBoundingClientRect().height))""")
    require(small >= 11, f"the plots' text is {small} pixels high")


def luminance(colour):
    parts = [float(x) for x in colour[colour.index("(") + 1:colour.index(")")].split(",")[:3]]
    linear = [c / 3294.6 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a, b):
    high, low = max(luminance(a), luminance(b)), min(luminance(a), luminance(b))
    return (high + 0.05) / (low + 0.05)


def light_and_dark(browser, path):
    """The page and its plots follow what the screen asks for, and stay readable (WCAG AA)."""
    grounds = {}
    for scheme in ("light", "dark"):
        browser.call("Emulation.setEmulatedMedia",
                     features=[{"name": "prefers-color-scheme", "value": scheme}])
        browser.open(path)
        colour = "(e, p) => getComputedStyle(e)[p]"
        ground = browser.eval(f"({colour})(document.body, 'backgroundColor')")
        grounds[scheme] = luminance(ground)
        browser.eval("document.body.insertAdjacentHTML('beforeend', "
                     "`<p class='d-low'>low</p><p class='d-bad'>failed</p>`)")
        for selector, part, least in (("body", "color", 7), ("thead th", "color", 4.5),
                                      (".d-low", "color", 4.5), (".d-bad", "color", 4.5),
                                      ("a", "color", 4.5),
                                      ("figure .d-wide text", "fill", 7),
                                      ("figure .d-wide g.line path", "stroke", 2)):
            text = browser.eval(f"({colour})(document.querySelector({json.dumps(selector)}), "
                                f"'{part}')")
            require(contrast(text, ground) >= least,
                    f"{scheme}: {selector} {text} on {ground}: {contrast(text, ground):.1f}")
    require(grounds["light"] > 0.8 and grounds["dark"] < 0.1, f"the ground changes: {grounds}")


def printed_on_five_pages(browser, path):
    """What is folded is not printed, unless it was unfolded."""
    def pages():
        pdf = base64.b64decode(browser.call("Page.printToPDF")["data"])
        return len(re.findall(rb"/Type\s*/Page\b", pdf))
    browser.open(path)
    folded = pages()
    require(2 <= folded <= 5, f"{folded} pages")
    browser.eval("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    require(pages() > folded + 1, f"unfolded, {pages()} pages in place of {folded}")


def hostile_texts_do_nothing(browser, path):
    quiet(browser, path)
    require(browser.eval("document.querySelectorAll('script').length") == 2, "no script was added")
    require(browser.eval("document.querySelectorAll('img').length") == 0, "no image was added")
    require("alert(1)" in browser.eval("document.body.innerText"), "they are shown as texts")


def main():
    browser = Browser()
    try:
        for check in sys.argv[2:]:
            globals()[check](browser, sys.argv[1])
    finally:
        browser.close()


if __name__ == "__main__":
    main()

"""pages_test.py BINARY [FOLDER]: a browser renders the page of every command on a phone and a desk, light and dark, without a
word on its console, without a request, and no wider than the screen. Screenshots go to FOLDER."""
import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

BINARY = sys.argv[1]
SHOTS = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
BROWSER = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
SHARED = "llama3.2-1b --gpus 4xA100-40GB --recompute none --zero 1 --micro-batch 1 --global-batch 8"
PAGES = {
    "fit": f"fit {SHARED} --tp 2 --pp 2 --tokens 1B --price 2/h",
    "open": "fit llama3.2-1b --gpus 8xA100-40GB --global-batch 8",
    "no": "fit llama3-8b --gpus 1xA100-40GB --tp 1 --pp 1",
    "sweep": "sweep llama3.2-1b --gpus 4xA100-40GB --global-batch 8 --top 5 --front",
    "compare": f"compare {SHARED} --a '--tp 2 --pp 1' --b '--tp 1 --pp 2'",
}
# Letters of a drawing that lie beside it.
OUTSIDE = """[...document.querySelectorAll("svg text")].filter(text => {
  const inner = text.getBoundingClientRect(), outer = text.closest("svg").getBoundingClientRect();
  return inner.width > 0 && (inner.right > outer.right + 1 || inner.left < outer.left - 1);
}).map(text => text.textContent).join("; ")"""
# Letters that the line of capacity goes through.
CROSSED = """[...document.querySelectorAll("svg")].flatMap(svg => {
  const lines = [...svg.querySelectorAll("line.capacity")].map(line => line.getBoundingClientRect());
  return [...svg.querySelectorAll("text:not([class^=in-])")].filter(text => {
    const box = text.getBoundingClientRect();
    return box.width > 0 && lines.some(line => line.height > line.width && line.left > box.left && line.right < box.right &&
      line.top < box.bottom - 3 && line.bottom > box.top + 3);
  }).map(text => text.textContent);
}).join("; ")"""
# What paper would cut off: tables and drawings that end beyond it.
CUT = """[...document.querySelectorAll("table, svg, pre, p, li")].filter(part => part.getBoundingClientRect().right >
  document.documentElement.clientWidth + 1).map(part => part.textContent.slice(0, 40)).join("; ")"""
PAPER = 718  # pixels of A4 within the usual margins of 1 cm
SCREENS = [(width, scheme) for width in (390, 1440) for scheme in ("light", "dark")]


class Browser:
    """Chromium, spoken to by the DevTools protocol over two pipes."""

    def __init__(self, folder):
        take, self.give = os.pipe()
        self.read, put = os.pipe()
        line = (f"exec '{BROWSER}' --headless --no-sandbox --disable-gpu --disable-background-networking --no-first-run "
                f"--user-data-dir='{folder}' --remote-debugging-pipe about:blank 3<&{take} 4>&{put}")
        self.process = subprocess.Popen(["bash", "-c", line], pass_fds=(take, put), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(take)
        os.close(put)
        self.rest, self.number, self.events, self.session = b"", 0, [], None

    def message(self):
        while b"\0" not in self.rest:
            part = os.read(self.read, 1 << 20)
            if not part:
                raise RuntimeError(f"{BROWSER} went away")
            self.rest += part
        text, _, self.rest = self.rest.partition(b"\0")
        return json.loads(text)

    def ask(self, method, **parameters):
        self.number += 1
        command = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.give, json.dumps(command).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def until(self, method):
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self.message())

    def attach(self):
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def value(self, expression):
        return self.ask("Runtime.evaluate", expression=expression, returnByValue=True)["result"]["value"]

    def show(self, url, width, scheme):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events.clear()
        self.ask("Page.navigate", url=url)
        self.until("Page.loadEventFired")

    def complaints(self, url):
        """What the page wrote, threw and asked for since it was shown."""
        for event in self.events:
            method, data = event.get("method"), event.get("params", {})
            if method == "Network.requestWillBeSent" and data["request"]["url"] != url:
                yield f"asked for {data['request']['url'][:200]}"
            elif method == "Runtime.consoleAPICalled":
                yield f"console.{data['type']}: {data['args']}"
            elif method == "Runtime.exceptionThrown":
                yield f"threw: {data['exceptionDetails']}"
            elif method == "Log.entryAdded":
                yield f"log: {data['entry']['text']}"


def check(browser, name, url):
    failures, colors = [], {}
    for width, scheme in SCREENS:
        browser.show(url, width, scheme)
        wide = browser.value("document.documentElement.scrollWidth")
        outside = browser.value(OUTSIDE)
        crossed = browser.value(CROSSED)
        what = list(browser.complaints(url))
        if outside:
            what.append(f"has text outside its drawing: {outside}")
        if crossed:
            what.append(f"has text that the capacity goes through: {crossed}")
        if wide > width:
            what.append(f"is {wide} pixels wide")
        if browser.value("document.body.innerText.length") < 500 or browser.value("document.querySelectorAll('svg').length") < 2:
            what.append("shows hardly anything")
        colors.setdefault(scheme, browser.value("getComputedStyle(document.body).backgroundColor"))
        failures += [f"{name}, {width} pixels, {scheme}: {text}" for text in what]
        if SHOTS:
            size = browser.ask("Page.getLayoutMetrics")["cssContentSize"]
            shot = browser.ask("Page.captureScreenshot", captureBeyondViewport=True,
                               clip={"x": 0, "y": 0, "width": width, "height": size["height"], "scale": 1})
            (SHOTS / f"{name}-{width}-{scheme}.png").write_bytes(base64.b64decode(shot["data"]))
    if colors["light"] == colors["dark"]:
        failures.append(f"{name}: as bright in the dark as in the light: {colors['light']}")
    return failures + check_print(browser, name, url) + check_scriptless(browser, name, url)


def check_print(browser, name, url):
    """All of it on paper, what is folded too."""
    browser.show(url, PAPER, "dark")
    browser.ask("Emulation.setEmulatedMedia", media="print")
    browser.value("document.querySelectorAll('main details').forEach(part => { part.open = true; }) || 1")
    cut = browser.value(CUT)
    back = browser.value("getComputedStyle(document.body).backgroundColor")
    browser.ask("Emulation.setEmulatedMedia", media="")
    return [f"{name}, printed: {what}" for what in (cut and f"is cut off: {cut}", back != "rgb(255, 255, 255)" and back) if what]


def check_scriptless(browser, name, url):
    """The same words where scripts are off, but for the buttons that copy."""
    words = "document.querySelector('main').innerText.replace(/\\bcopy\\b/g, '').replace(/\\s+/g, ' ')"
    browser.show(url, 1440, "light")
    usual = browser.value(words)
    browser.ask("Emulation.setScriptExecutionDisabled", value=True)
    browser.show(url, 1440, "light")
    without = browser.value(words)
    browser.ask("Emulation.setScriptExecutionDisabled", value=False)
    return [] if usual == without and len(usual) > 500 else [f"{name}: says something else without scripts"]


def check_served(browser):
    """The live page, which keeps what was asked, and lists it."""
    server = subprocess.Popen([BINARY, "serve", "--port", "0"], stderr=subprocess.PIPE, text=True)
    address = server.stderr.readline().split()[1]
    query = "model=llama3.2-1b&gpus=4xA100-40GB&zero=1&micro-batch=1&global-batch=8&tp="
    try:
        failures = check(browser, "serve", f"{address}fit?{query}2")
        browser.show(f"{address}fit?{query}1", 1440, "light")
        covered = browser.value("[...document.querySelectorAll('.ask button')].map(b => b.getBoundingClientRect()).filter((b, i, all) => "
                              "i && b.left < all[i - 1].right && b.top < all[i - 1].bottom).length")
        if covered:
            failures.append("serve: buttons lie on each other")
        kept = browser.value("document.querySelectorAll('.history li').length")
        if kept != 2:
            failures.append(f"serve: {kept} of 2 plans are kept")
        told = browser.value("document.querySelector('.history a').textContent")
        if not told.startswith("llama3.2-1b on 4 × A100-40GB, zero 1, micro-batch 1, global-batch 8, tp 1: ✓ fits, "):
            failures.append(f"serve: a plan is remembered as {told}")
        browser.value("[...document.querySelectorAll('.history input')].map(box => box.click()).length")
        browser.events.clear()
        browser.value("document.querySelector('.history .both').click() || 1")
        browser.until("Page.loadEventFired")
        title = browser.value("document.querySelector('.sentence').textContent")
        if "compare?" not in browser.value("location.href") or "tp 2" not in title:
            failures.append(f"serve: two plans are not compared: {title}")
        browser.value("document.querySelector('.history li button').click() || 1")
        left = browser.value("document.querySelectorAll('.history li').length")
        if left != 2:
            failures.append(f"serve: {left} of 2 plans are left after one was forgotten")
        # One that is asked again comes back with its options, from its link.
        browser.events.clear()
        browser.value("document.querySelector('.history a').click() || 1")
        browser.until("Page.loadEventFired")
        if browser.value("document.querySelector('input[name=tp]').value") != "1":
            failures.append("serve: a plan is not restored")
        return failures
    finally:
        server.terminate()
        server.wait()


def main():
    if not BROWSER:
        print("skipped: no chromium")
        return 77
    if SHOTS:
        SHOTS.mkdir(parents=True, exist_ok=True)
    failures = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Browser(f"{folder}/profile")
        try:
            try:
                browser.attach()
            except (OSError, RuntimeError) as error:
                print(f"skipped: the browser does not start here: {error}")
                return 77
            # That it complains at all: a page with a fault of each kind.
            wrong = pathlib.Path(folder, "wrong.html")
            wrong.write_text("<img src='http://localhost:9/x'><p style='width:2000px'><script>console.log(1);throw 1</script>")
            browser.show(wrong.as_uri(), 390, "light")
            found = " ".join(browser.complaints(wrong.as_uri()))
            if not all(word in found for word in ("asked for", "console.log", "threw")):
                failures.append(f"a faulty page passed: {found}")
            if browser.value("document.documentElement.scrollWidth") <= 390:
                failures.append("a page too wide passed")
            for name, question in PAGES.items():
                file = pathlib.Path(folder, f"{name}.html")
                run = subprocess.run(f"'{BINARY}' {question} --quiet --html '{file}'", shell=True, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, text=True)
                if run.returncode not in (0, 1):
                    failures.append(f"{question}: {run.stdout}")
                else:
                    failures += check(browser, name, file.as_uri())
            failures += check_served(browser)
        finally:
            browser.process.terminate()
            browser.process.wait()
    print("\n".join(failures) or f"{len(PAGES) + 1} pages on {len(SCREENS)} screens: nothing said, nothing asked for, none too wide")
    return len(failures) > 0


if __name__ == "__main__":
    sys.exit(main())

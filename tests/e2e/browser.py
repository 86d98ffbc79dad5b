"""A headless Chromium for tests and scripts: WebDriver over plain HTTP, and Chromium's own protocol through it."""

import base64
import json
import re
import shutil
import struct
import subprocess
import urllib.request
import zlib

# Every line of text that is seen: its box, and the box that cuts it. Text in a box that scrolls may lie beyond it.
TEXTS = """
const found = [];
let passed_over = 0;
const scrolling = new Set([...document.querySelectorAll('.scroll')].filter(box => getComputedStyle(box).overflowX === 'auto'));
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node = walker.nextNode(); node; node = walker.nextNode()) {
  const element = node.parentElement;
  if (!node.data.trim() || element.closest('title, desc, script, style')) continue;
  if (scrolling.has(element.closest('.scroll'))) {
    passed_over += 1;
    continue;
  }
  if (!element.checkVisibility({visibilityProperty: true})) continue;
  const head = element.closest('.choices thead');
  if (head && getComputedStyle(head).position === 'absolute') continue;  // for screen readers alone
  const svg = element.closest('svg');
  const range = document.createRange();
  range.selectNodeContents(node);
  const boxes = svg ? [element.getBoundingClientRect()] : [...range.getClientRects()];
  const edge = (svg || document.documentElement).getBoundingClientRect();
  for (const box of boxes) {
    if (box.width < 1 || box.height < 1) continue;
    found.push({text: node.data.trim().slice(0, 60), left: box.left, right: box.right, top: box.top + scrollY,
                bottom: box.bottom + scrollY, edges: [edge.left, edge.right, edge.top + scrollY, edge.bottom + scrollY]});
  }
}
return [found, passed_over];
"""


def overlapping(texts):
    """Pairs of texts that lie on one another by more than the edges of their boxes."""
    pairs = []
    texts = sorted(texts, key=lambda text: text["top"])
    for i, one in enumerate(texts):
        for other in texts[i + 1:]:
            if other["top"] > one["bottom"] - 2.5:
                break
            if min(one["right"], other["right"]) - max(one["left"], other["left"]) > 1.5:
                pairs.append((one["text"], other["text"]))
    return pairs


def cut(texts):
    """Those that stick out of the panel or the page that they are in."""
    def inside(text):
        left, right, top, bottom = text["edges"]
        return (text["left"] >= left - 1 and text["right"] <= right + 1
                and text["top"] >= top - 1 and text["bottom"] <= bottom + 1)
    return [text for text in texts if not inside(text)]


def missing():
    """The programs that aren't there."""
    return [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]


def pixels(path):
    """Red, green and blue of each pixel of a PNG file of 8 bits a channel, one after the other."""
    data = path.read_bytes()
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    size = {2: 3, 6: 4}[kind]  # bytes a pixel
    if depth != 8:
        raise ValueError(f"{path}: expected 8 bits a channel, found {depth}")
    at, packed = 8, b""
    while at < len(data):
        length = int.from_bytes(data[at:at + 4], "big")
        if data[at + 4:at + 8] == b"IDAT":
            packed += data[at + 8:at + 8 + length]
        at += 12 + length
    raw, line = zlib.decompress(packed), width * size
    above, found = bytes(line), bytearray()
    for y in range(height):
        how, row = raw[y * (line + 1)], bytearray(raw[y * (line + 1) + 1:(y + 1) * (line + 1)])
        for i in range(line):
            left, up, corner = row[i - size] if i >= size else 0, above[i], above[i - size] if i >= size else 0
            guess = left + up - corner
            nearest = min((left, up, corner), key=lambda value: abs(guess - value))
            row[i] = (row[i] + (0, left, up, (left + up) // 2, nearest)[how]) & 255
        above = bytes(row)
        found += bytes(value for i, value in enumerate(row) if i % size < 3)
    return found


class Browser:
    """Chromium for `with Browser() as browser:`; one page at a time."""

    def __enter__(self):
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                       text=True)
        port = None
        for line in self.driver.stdout:
            found = re.search(r"started successfully on port (\d+)", line)
            if found:
                port = found[1]
                break
        if port is None:
            raise RuntimeError("chromedriver: expected a port, found none")
        self.url = f"http://127.0.0.1:{port}"
        options = {
            "browserName": "chrome",
            "goog:chromeOptions": {"binary": shutil.which("chromium"),
                                   "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                                            "--disable-dev-shm-usage", "--force-device-scale-factor=1"]},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        session = self._call("POST", "/session", {"capabilities": {"alwaysMatch": options}})
        self.url += "/session/" + session["sessionId"]
        return self

    def __exit__(self, *_):
        try:
            self._call("DELETE", "", None)
        finally:
            self.driver.terminate()
            self.driver.stdout.close()
            self.driver.wait()

    def _call(self, method, path, body):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method,
                                         headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)["value"]

    def cdp(self, command, **parameters):
        return self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def open(self, url):
        self._call("POST", "/url", {"url": url})

    def script(self, text, *arguments):
        return self._call("POST", "/execute/sync", {"script": text, "args": list(arguments)})

    def logs(self, kind):
        """Entries since the last call: `browser` has console messages, `performance` what was requested."""
        return self._call("POST", "/se/log", {"type": kind})

    def view(self, width, height=900, dark=False, media=""):
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.cdp("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def screenshot(self, path, clip=None, whole=True, small=False):
        """The whole page, or a part of it; not `whole`: of what is in sight, without laying the page out anew. Pressing the file
        takes most of the time, so that only a `small` one is pressed well."""
        more = {"clip": {**clip, "scale": 1}} if clip else {}
        shot = self.cdp("Page.captureScreenshot", format="png", captureBeyondViewport=whole, optimizeForSpeed=not small, **more)
        path.write_bytes(base64.b64decode(shot["data"]))

    def accessibility_tree(self):
        """(role, name) of what a screen reader meets, in its order."""
        nodes = self.cdp("Accessibility.getFullAXTree")["nodes"]
        by_id = {node["nodeId"]: node for node in nodes}
        found = []

        def visit(node):
            if not node.get("ignored"):
                found.append((node.get("role", {}).get("value", ""), node.get("name", {}).get("value", "")))
            for child in node.get("childIds", []):
                if child in by_id:
                    visit(by_id[child])

        visit(nodes[0])
        return found

"""A page in headless Chromium: in a frame of a width, whose document the page around it looks into."""

import html
import json
import re
import shutil
import subprocess

import pytest

CHROMIUM = next((path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")

_FRAME = """<!DOCTYPE html><body><iframe srcdoc="{page}" style="width: {width}px; height: 800px; border: 0"></iframe>
<script>
addEventListener("load", () => {{
  const seen = frames[0].document, root = seen.documentElement, wide = [];
  for (const element of seen.body.querySelectorAll("*")) {{
    const box = element.getBoundingClientRect();
    const beyond = box.width && (box.right > root.clientWidth + 0.5 || box.left < -0.5);
    if (beyond && !("{scrolled}" && element.closest("{scrolled}"))) wide.push(element.outerHTML.slice(0, 90));
  }}
  const result = {{
    width: root.clientWidth, overflow: root.scrollWidth - root.clientWidth, wide,
    requests: frames[0].performance.getEntriesByType("resource").map((entry) => entry.name),
  }};
  {more}
  document.body.innerHTML = "<pre id=result></pre>";
  document.getElementById("result").textContent = JSON.stringify(result);
}});
</script></body>"""


def look(folder, page, *, width=360, scrolled="", more="", flags=()):
    """Renders a page in a frame of a width, and returns measurements of it: `result`, to which JavaScript may add.

    Elements wider than the page are listed, except those below what the selector `scrolled` matches.
    """
    (folder / "frame.html").write_text(
        _FRAME.format(page=html.escape(page), width=width, scrolled=scrolled, more=more), encoding="utf-8"
    )
    # --no-sandbox: root has none, as in containers.
    fixed = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--dump-dom"]
    command = [CHROMIUM, *fixed, f"--user-data-dir={folder / 'profile'}", *flags, (folder / "frame.html").as_uri()]
    dumped = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    return json.loads(html.unescape(re.search(r'<pre id="result">(.*?)</pre>', dumped, re.DOTALL)[1]))

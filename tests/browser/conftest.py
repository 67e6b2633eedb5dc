"""A headless Chromium and TensorBoard's servers. With GANLAB_PICTURES=FOLDER pictures of the pages are left there."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

PICTURES = os.environ.get("GANLAB_PICTURES")


@pytest.fixture(scope="session")
def browser():
    """Debian's `chromium` and `chromium-driver`, or any Chrome that has its driver beside it."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium: pip install -e '.[test]'")
    binary = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("needs a browser and its driver: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    # No sandbox: in containers it needs privileges, and the only page is our own. Their /dev/shm is small.
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield browser
    browser.quit()


@pytest.fixture(scope="module")
def serve(browser):
    """Starts `ganlab tensorboard` on a folder; returns its address. After `browser`, so that none starts without."""
    servers = []

    def start(folder):
        command = [sys.executable, "-m", "ganlab", "tensorboard", folder, "--port", "0"]
        servers.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        return re.search(r"http://\S+/", servers[-1].stdout.readline())[0]

    yield start
    for server in servers:
        server.terminate()
        server.wait(30)


@pytest.fixture(scope="session")
def until():
    """Waits until a function returns something true, and returns that."""

    def until(ready, what="page drawn", seconds=60):
        end = time.monotonic() + seconds
        while not (value := ready()):
            assert time.monotonic() < end, f"no {what} within {seconds} s"
            time.sleep(0.1)
        return value

    return until


@pytest.fixture(scope="session")
def keep(browser):
    """Saves a picture of the page if pictures are wanted."""

    def keep(name):
        if PICTURES:
            time.sleep(2)  # until animations have ended
            browser.save_screenshot(str(Path(PICTURES) / f"{name}.png"))

    return keep

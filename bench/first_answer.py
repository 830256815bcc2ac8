"""From nothing to the first answer on the page: install from a wheel, serve the demo, sign in, click, read.

    python bench/first_answer.py                 # builds a wheel, makes a fresh environment, times each step
    python bench/first_answer.py --wheel dist/farthing-0.2.0-py3-none-any.whl
    python bench/first_answer.py --packages      # also what compiling each package takes

Whoever installs downloads the packages as well: how long that takes is their line's matter, and is in the first figure.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
PORT = 18_765


def built(folder: Path) -> Path:
    """Build a wheel of this checkout."""
    run = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(run, check=True)
    return next(folder.glob("farthing-*.whl"))


def installed(wheel: Path, folder: Path) -> Path:
    """Make an environment with the wheel and its extra `server`; return the command."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", f"{wheel}[server]"]
    subprocess.run(pip, check=True)
    return folder / "bin" / "farthing"


def compiled(command: Path) -> list[tuple[float, str]]:
    """Return the seconds of processor that compiling each package takes, most first."""
    (site,) = command.parent.parent.glob("lib/python*/site-packages")
    found = []
    for package in [one for one in site.iterdir() if one.is_dir() and one.suffix != ".dist-info"]:
        began = time.process_time()
        compileall.compile_dir(str(package), quiet=2, force=True)
        found.append((time.process_time() - began, package.name))
    return sorted(found, reverse=True)


def answered(folder: Path) -> None:
    """Sign in as alice, pay for the question that stands there, and wait for the answer."""
    tokens = json.loads((folder / "tokens.json").read_text("utf-8"))
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{PORT}")
        page.fill("#token", tokens["alice"])
        page.keyboard.press("Enter")
        page.click("#pay:not([disabled])")
        page.wait_for_selector("#rows tbody tr")
        browser.close()


def main() -> None:
    """Print how long each step took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheel", type=Path)
    parser.add_argument("--packages", action="store_true")
    given = parser.parse_args()
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        wheel = (given.wheel or built(folder)).resolve()
        began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        command = installed(wheel, folder / "venv")
        there = time.monotonic()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        busy = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
        words = [str(command), "serve", "--demo", "--port", str(PORT), "--token-file", "tokens.json"]
        server = subprocess.Popen(words, cwd=folder, env=bare, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            if server.stdout is None or b"answers on" not in server.stdout.readline():
                raise SystemExit("the server did not start")
            serving = time.monotonic()
            answered(folder)
            seen = time.monotonic()
        finally:
            server.terminate()
            server.wait()
        packages = compiled(command)[:8] if given.packages else []
    print(f"pip install 'farthing[server]'   {there - began:6.1f} s, of them {busy:.1f} s of processor")
    print(f"farthing serve --demo, listening {serving - there:6.1f} s")
    print(f"sign in, click, answer           {seen - serving:6.1f} s")
    print(f"together                         {seen - began:6.1f} s")
    for seconds, name in packages:
        print(f"    compiling {name:22} {seconds:5.1f} s of processor")


if __name__ == "__main__":
    main()

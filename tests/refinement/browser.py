"""A real Chromium, for tests of pages: widths, light and dark, contrast, and what its console says."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

CHROME, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
needs_browser = pytest.mark.skipif(
    CHROME is None or DRIVER is None, reason="no Chromium with chromedriver is installed"
)
WIDTHS = (390, 800, 1024, 1440)
AA, AA_LARGE = 4.5, 3.0
"""Least contrast of text by WCAG 2.1, level AA; large is from 24 px on, or 18.66 px if bold."""

CONTRAST = """
const [least, leastLarge] = arguments;
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
function rgba(text) {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = text;
  canvas.fillRect(0, 0, 1, 1);
  const d = canvas.getImageData(0, 0, 1, 1).data;
  return [d[0], d[1], d[2], d[3] / 255];
}
const over = (top, low) => [0, 1, 2].map((i) => top[i] * top[3] + low[i] * (1 - top[3])).concat(1);
const channel = (c) => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
const light = (c) => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
function ground(element) {
  const layers = [];
  for (let e = element; e; e = e.parentElement) {
    const rect = e.matches(".step") ? e.querySelector("rect") : e.querySelector(":scope > rect.ground");
    layers.push(rgba(rect ? getComputedStyle(rect).fill : getComputedStyle(e).backgroundColor));
  }
  return layers.reduceRight((low, top) => over(top, low), [255, 255, 255, 1]);
}
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || !element.checkVisibility({ visibilityProperty: true })) continue;
  if (/^(SCRIPT|STYLE|TITLE|OPTION|title)$/.test(element.tagName) || element.closest("button:disabled, .dim")) continue;
  const style = getComputedStyle(element), below = ground(element);
  let text = rgba(element instanceof SVGElement ? style.fill : style.color);
  for (let e = element; e; e = e.parentElement) text[3] *= Number(getComputedStyle(e).opacity);
  const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
  const value = ratio(over(text, below), below);
  if (value >= (large ? leastLarge : least)) continue;
  const name = element.tagName + "." + (element.getAttribute("class") || "");
  found.push(value.toFixed(2) + " " + name + ": " + walker.currentNode.data.trim().slice(0, 40));
}
return [...new Set(found)];
"""
"""Texts whose contrast with what is drawn below them is too small."""


@contextmanager
def browser() -> Iterator[Any]:
    """A headless Chromium with its driver; its console is kept."""
    webdriver = pytest.importorskip("selenium.webdriver")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROME)
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1440,900"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    try:
        yield driver
    finally:
        driver.quit()


def look(driver: Any, width: int, *, dark: bool) -> None:
    """Show the page at that width, light or dark."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})


def flaws(driver: Any, address: str = "", modes: Sequence[bool] = (False, True)) -> list[str]:
    """At every width, light and dark (`modes`): is the page wider than the window, is a text too pale? And what failed
    in it. An address is opened anew for each; without one it is the page at hand.
    """
    found = []
    for width in WIDTHS:
        for dark in modes:
            look(driver, width, dark=dark)
            if address:
                driver.get(address)
            where = f"{width} px, {'dark' if dark else 'light'}"
            if driver.execute_script("return document.documentElement.scrollWidth > innerWidth"):
                found.append(f"{where}: wider than the window")
            found += [f"{where}: {text}" for text in driver.execute_script(CONTRAST, AA, AA_LARGE)]
    look(driver, 1440, dark=False)
    return found + [str(entry) for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]

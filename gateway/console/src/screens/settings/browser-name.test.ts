import assert from "node:assert/strict";
import { test } from "node:test";
import { browserName } from "./browser-name.ts";

test("browsers are named as people name them", () => {
  const names = {
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/156.0.0.0 Safari/537.36": "Chrome on Linux",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36 Edg/156.0.0.0": "Edge on Windows",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.0 Safari/605.1.15": "Safari on macOS",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.0 Mobile/15E148 Safari/604.1": "Safari on iOS",
    "Mozilla/5.0 (Android 16; Mobile; rv:150.0) Gecko/150.0 Firefox/150.0": "Firefox on Android",
    "Firefox/150.0": "Firefox",
    "a program": "a program",
  };
  for (const [client, name] of Object.entries(names)) assert.equal(browserName(client), name);
  assert.equal(browserName(undefined), "Unknown browser");
});

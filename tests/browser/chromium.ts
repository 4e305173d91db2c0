/** Debian's Chromium, which sends no requests of its own to its vendor and resolves no name: `localhost` is loopback in it. */
import { env } from "node:process";

import { type Browser, chromium } from "playwright-core";

const ARGUMENTS = [
  "--headless",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
  ...(process.getuid?.() === 0 ? ["--no-sandbox"] : []),
];

export const launch = (): Promise<Browser> => chromium.launch({ executablePath: env["CHROMIUM"] ?? "/usr/bin/chromium-headless-shell", args: ARGUMENTS });

const BROWSERS: [RegExp, string][] = [
  [/\bEdg(?:A|iOS)?\//, "Edge"],
  [/\bOPR\//, "Opera"],
  [/\b(?:Firefox|FxiOS)\//, "Firefox"],
  [/\b(?:HeadlessChrome|Chrome|CriOS|Chromium)\//, "Chrome"],
  [/\bSafari\//, "Safari"],
];
const SYSTEMS: [RegExp, string][] = [
  [/\b(?:iPhone|iPad)\b/, "iOS"],
  [/\bAndroid\b/, "Android"],
  [/\bWindows\b/, "Windows"],
  [/\bMac OS X\b/, "macOS"],
  [/\bCrOS\b/, "ChromeOS"],
  [/\bLinux\b/, "Linux"],
];

/** "Firefox on Windows", for what a browser calls itself. Unknown ones keep their own words. */
export function browserName(client: string | undefined): string {
  if (!client) return "Unknown browser";
  const [browser, system] = [BROWSERS, SYSTEMS].map((table) => table.find(([pattern]) => pattern.test(client))?.[1]);
  if (!browser) return client;
  return system ? `${browser} on ${system}` : browser;
}

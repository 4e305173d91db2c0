/** What a person copies to use a token: in a shell, in the command line, in a tool host, and by HTTP. */

/** `text` as one word of a POSIX shell. */
const quoted = (text: string): string => (/^[\w./:@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`);

export interface TokenLine {
  label: string;
  hint: string;
  text: string;
}

/** The lines for `canvas`, the command line. */
export const commandLines = (origin: string, secret: string): TokenLine[] => [
  {
    label: "Environment",
    hint: "For one shell. Every command of canvas reads these variables.",
    text: `export CANVAS_BASE_URL=${quoted(origin)}\nexport CANVAS_TOKEN=${quoted(secret)}`,
  },
  {
    label: "Sign-in command",
    hint: "Keeps the token in a profile. With the variables set:",
    text: `printf '%s' "$CANVAS_TOKEN" | canvas login --token-stdin`,
  },
];

const json = (value: object): string => JSON.stringify(value, null, 2);

/** The lines for hosts of tools, which speak the Model Context Protocol. */
export const toolLines = (origin: string, secret: string): TokenLine[] => [
  {
    label: "Server by URL",
    hint: "For hosts that reach servers over HTTP.",
    text: json({ mcpServers: { canvas: { type: "http", url: `${origin}/mcp`, headers: { Authorization: `Bearer ${secret}` } } } }),
  },
  {
    label: "Server by command",
    hint: "For hosts that start a program. It needs canvas on this machine.",
    text: json({ mcpServers: { canvas: { command: "canvas", args: ["mcp"], env: { CANVAS_BASE_URL: origin, CANVAS_TOKEN: secret } } } }),
  },
];

/** A request by HTTP. */
export const requestLines = (origin: string, secret: string): TokenLine[] => [
  {
    label: "Request",
    hint: "Lists the canvases that the token may read.",
    text: `curl --fail-with-body -sS ${quoted(`${origin}/api/canvas-agent/v1/canvases`)} \\\n  -H 'Authorization: Bearer ${secret}'`,
  },
];

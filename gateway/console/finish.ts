/** Checks what the build made: its size, and the licenses of what is in it. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync } from "node:zlib";

/**
 * Bytes over the network, compressed: of the first page, of a board that is opened at its address, of the same with all its panels, dialogs
 * and tools, of the pages of administrators, and of everything but those.
 */
const BUDGETS = { first: 130_000, board: 250_000, editor: 304_000, admin: 60_000, all: 336_000 };
/** The same for parts that are fetched when they are first used, by their names. */
const PARTS = { handover: 5_000, present: 6_000 };
const LICENSES = new Set(["MIT", "ISC", "BSD-3-Clause", "0BSD", "Unlicense"]);

const dist = join(import.meta.dirname, "dist");
const read = (file: string) => readFileSync(join(dist, file), "utf8");
const compressed = (file: string) => brotliCompressSync(readFileSync(join(dist, file))).length;
const sum = (files: Iterable<string>) => [...files].reduce((total, file) => total + compressed(file), 0);
const files = readdirSync(join(dist, "static")).map((file) => `static/${file}`);
const named = (name: string) => files.filter((file) => file.startsWith(`static/${name}`) && file.endsWith(".js"));

/** What these scripts load besides `known`: with them, or also when it is first used. */
function loaded(scripts: string[], how: RegExp, known: Iterable<string>): Set<string> {
  const found = new Set(known);
  for (const left = [...scripts]; left.length > 0; ) {
    const file = left.pop() as string;
    if (found.has(file)) continue;
    found.add(file);
    left.push(...[...read(file).matchAll(how)].map(([, name]) => `static/${name}`));
  }
  return found;
}
const WITH = /(?:from|import)["`]\.\/([^"`]+)/g;
const EVER = /(?:from|import\(?)["`]\.\/([^"`]+)/g;

/** Fonts are fetched when a text is shown in one. Each by itself is small enough. */
const FONT = 150_000;
const fonts = files.filter((file) => file.endsWith(".woff2"));
const first = ["index.html", ...[...read("index.html").matchAll(/(?:src|href)="\/(static\/[^"]+)"/g)].map(([, file]) => file ?? "")];
const board = [...named("editor-"), ...named("stream.worker-")];
const admin = named("admin");
const sizes = {
  first: sum(first),
  board: sum(loaded(board, WITH, first)),
  // The page of a canvas without a board shares it as well.
  editor: sum(loaded([...board, ...named("share-dialog-")], EVER, first)),
  admin: sum(admin),
  // Fonts and images are fetched when they are shown, and each is small.
  all: sum(["index.html", ...files.filter((file) => !fonts.includes(file) && !admin.includes(file) && !file.endsWith(".jpg"))]),
};
const partOf = (name: string) => sum(named(`${name}-`));
const licenses = [...read("licenses.txt").matchAll(/^## (.+) - \S+ \((.+)\)$/gm)];

const failures = [
  ...fonts.filter((file) => statSync(join(dist, file)).size > FONT).map((file) => `${file}: more than ${FONT} bytes`),
  ...(Object.keys(BUDGETS) as (keyof typeof BUDGETS)[])
    .filter((part) => sizes[part] > BUDGETS[part])
    .map((part) => `${part}: ${sizes[part]} bytes compressed, at most ${BUDGETS[part]}`),
  ...Object.entries(PARTS).flatMap(([name, most]) => (partOf(name) > most || partOf(name) === 0 ? [`${name}: ${partOf(name)} bytes compressed, at most ${most}`] : [])),
  ...licenses.filter(([, , license]) => !LICENSES.has(license ?? "")).map(([, name, license]) => `${name}: license ${license}`),
  ...(licenses.length === 0 ? ["dist/licenses.txt names no package"] : []),
];
for (const failure of failures) console.error(failure);
process.exitCode = failures.length > 0 ? 1 : 0;
const { first: page, board: opened, editor, all } = sizes;
console.log(`${page} bytes compressed for the first page, ${opened} for a board, ${editor} with its tools, ${all} in all; ${licenses.length} packages`);

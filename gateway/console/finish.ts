/** Checks what the build made: its size, and the licenses of what is in it. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync } from "node:zlib";

/** Bytes over the network, compressed: what the first page needs, and everything together. */
const BUDGETS = { first: 130_000, all: 335_000 };
/** The same for parts that are fetched when they are first used, by their names. */
const PARTS = { handover: 5_000, present: 6_000, admin: 60_000 };
const LICENSES = new Set(["MIT", "ISC", "BSD-3-Clause", "0BSD", "Unlicense"]);

const dist = join(import.meta.dirname, "dist");
const compressed = (file: string) => brotliCompressSync(readFileSync(join(dist, file))).length;
const sum = (files: string[]) => files.reduce((total, file) => total + compressed(file), 0);
const files = readdirSync(join(dist, "static"));
/** Fonts are fetched when a text is shown in one. Each by itself is small enough. */
const FONT = 150_000;
const fonts = files.filter((file) => file.endsWith(".woff2"));
const html = readFileSync(join(dist, "index.html"), "utf8");
const named = [...html.matchAll(/(?:src|href)="\/(static\/[^"]+)"/g)].map(([, file]) => file ?? "");
const sizes = {
  first: sum(["index.html", ...named]),
  // Fonts and images are fetched when they are shown, and each is small.
  // Members fetch nothing of what administrators see.
  all: sum(["index.html", ...files.filter((file) => !fonts.includes(file) && !file.endsWith(".jpg") && !file.startsWith("admin-")).map((file) => `static/${file}`)]),
};
const partOf = (name: string) => sum(files.filter((file) => file.startsWith(`${name}-`) && file.endsWith(".js")).map((file) => `static/${file}`));
const licenses = [...readFileSync(join(dist, "licenses.txt"), "utf8").matchAll(/^## (.+) - \S+ \((.+)\)$/gm)];

const failures = [
  ...fonts.filter((file) => statSync(join(dist, "static", file)).size > FONT).map((file) => `${file}: more than ${FONT} bytes`),
  ...(Object.keys(BUDGETS) as (keyof typeof BUDGETS)[])
    .filter((part) => sizes[part] > BUDGETS[part])
    .map((part) => `${part}: ${sizes[part]} bytes compressed, at most ${BUDGETS[part]}`),
  ...Object.entries(PARTS).flatMap(([name, most]) => (partOf(name) > most || partOf(name) === 0 ? [`${name}: ${partOf(name)} bytes compressed, at most ${most}`] : [])),
  ...licenses.filter(([, , license]) => !LICENSES.has(license ?? "")).map(([, name, license]) => `${name}: license ${license}`),
  ...(licenses.length === 0 ? ["dist/licenses.txt names no package"] : []),
];
for (const failure of failures) console.error(failure);
process.exitCode = failures.length > 0 ? 1 : 0;
console.log(`${sizes.first} bytes compressed for the first page, ${sizes.all} in all; ${licenses.length} packages`);

/** Checks of the sources that oxlint has no rules for. */
import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";

interface Rule {
  what: RegExp;
  /** The only files in which it may stand. */
  except?: readonly string[];
  why: string;
}

const RULES: readonly Rule[] = [
  { what: /"(Inspect|Findings|Assets|Runs)"|>(Inspect|Findings|Assets|Runs)<|"Run into a new node"|(image|video) slot"/, why: "these are Details, Check, Pictures, Queue, Apply and places" },
  { what: /<dialog\b/, except: ["ui/dialog.tsx"], why: "use Dialog of ui/dialog.tsx: it is a child of the body, where no style of what opens it reaches it" },
  { what: /stand-in|stands? in for/i, why: "say “draft”, as words.ts does" },
  { what: />\s*(Queued|Finishing|Expired)\b|"(Queued|Finishing|Expired)"/, why: "use statusOf of work.ts" },
  { what: /"(Flow|First frame|Last frame)"|"Reference: |may (not )?be reported as done/, why: "use the words of words.ts" },
  { what: /applied \d* ?operation/i, why: "say what was done, as board/news.ts does" },
];

const isComment = (line: string): boolean => /^\s*(\/\*|\*|\/\/)/.test(line);

const SOURCES = join(import.meta.dirname, "src");
const files = readdirSync(SOURCES, { recursive: true, encoding: "utf8" });
const read = (file: string): string => readFileSync(join(SOURCES, file), "utf8");
const scripts = files.filter((file) => /\.tsx?$/.test(file) && !file.endsWith("contract.ts")).map((file) => ({ file, text: read(file) }));

function wordsOf({ file, text }: { file: string; text: string }): string[] {
  const broken = RULES.filter(({ except = [] }) => !except.includes(file));
  return text.split("\n").flatMap((line, at) => (isComment(line) ? [] : broken.filter(({ what }) => what.test(line)).map(({ why }) => `src/${file}:${at + 1}: ${why}\n    ${line.trim()}`)));
}

/** The classes of a style sheet that nothing uses, and those that it lacks. */
function classesOf(sheet: string): string[] {
  const defined = new Set([...read(sheet).replaceAll(/\/\*.*?\*\/|:global\(.*?\)|"[^"]*"/gs, "").matchAll(/\.([a-z]\w*)(?=[^{}]*\{)/gi)].map(([, name = ""]) => name));
  const used = new Set<string>();
  for (const { file, text } of scripts) {
    for (const [, styles, path = ""] of text.matchAll(/import (\w+) from "(\S+\.module\.css)";/g)) {
      if (join(file, "..", path) !== sheet) continue;
      for (const [, name = ""] of text.replaceAll(/^import .*$/gm, "").matchAll(new RegExp(`(?<![.\\w])${styles}\\.(\\w+)`, "g"))) used.add(name);
      // By names that are not known here.
      if (text.includes(`${styles}[`)) for (const name of defined) used.add(name);
    }
  }
  const unused = [...defined].filter((name) => !used.has(name)).map((name) => `src/${sheet}: nothing uses the class ${name}`);
  return [...unused, ...[...used].filter((name) => !defined.has(name)).map((name) => `src/${sheet}: lacks the class ${name}`)];
}

const sheets = files.filter((file) => file.endsWith(".module.css"));
const faults = [
  ...scripts.filter(({ file }) => file.endsWith(".tsx")).flatMap(wordsOf),
  ...sheets.flatMap(classesOf),
  ...sheets.filter((sheet) => sheets.some((other) => other !== sheet && basename(other) === basename(sheet))).map((sheet) => `src/${sheet}: another style sheet has the same name`),
];
for (const fault of faults) console.error(fault);
process.exitCode = faults.length > 0 ? 1 : 0;

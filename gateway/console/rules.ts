/** Checks of the sources that oxlint has no rules for. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

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
const faults = readdirSync(SOURCES, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".tsx"))
  .flatMap((file) => {
    const lines = readFileSync(join(SOURCES, file), "utf8").split("\n");
    const broken = RULES.filter(({ except = [] }) => !except.includes(file));
    return lines.flatMap((line, at) => (isComment(line) ? [] : broken.filter(({ what }) => what.test(line)).map(({ why }) => `src/${file}:${at + 1}: ${why}\n    ${line.trim()}`)));
  });
for (const fault of faults) console.error(fault);
process.exitCode = faults.length > 0 ? 1 : 0;

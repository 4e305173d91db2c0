/** Images and Elements that a prompt mentions by their titles: "make it backlit, steam like @Cup". */

/** What a prompt can mention. The service knows an image by its number in the request, and an Element by its name. */
export interface Mention {
  title: string;
  /** What the model reads in its place. */
  as: string;
}

/** A mention that is being typed: where its `@` is, and what follows. */
export interface Typed {
  at: number;
  query: string;
}

/** How much may follow an `@` while it is still taken for the beginning of a mention. */
const MOST_QUERY = 60;
const isWord = (letter: string | undefined): boolean => letter !== undefined && /[\p{L}\p{N}_]/u.test(letter);

/** The mention that the caret is in. An `@` within a word, such as that of an address, begins none. */
export function mentionAt(text: string, caret: number): Typed | undefined {
  const at = text.lastIndexOf("@", caret - 1);
  const query = text.slice(at + 1, caret);
  if (at < 0 || caret <= at || isWord(text[at - 1]) || query.length > MOST_QUERY || query.includes("\n")) return undefined;
  return { at, query };
}

/** The text with a mention in place of what was typed of it, and where the caret is then. */
export function withMention(text: string, { at, query }: Typed, title: string): { text: string; caret: number } {
  const rest = text.slice(at + 1 + query.length);
  const before = `${text.slice(0, at)}@${title}${rest === "" || isWord(rest[0]) ? " " : ""}`;
  return { text: before + rest, caret: before.length + (rest.startsWith(" ") ? 1 : 0) };
}

/** A part of a text, and where it begins. */
interface Part {
  at: number;
  text: string;
  title?: string;
}

/** The parts of a text: what is said, and the titles that it mentions. Of titles that begin alike, the longest counts. */
export function partsOf(text: string, titles: string[]): Part[] {
  const sorted = titles.filter((title) => title !== "").toSorted((a, b) => b.length - a.length);
  const parts: Part[] = [];
  let said = 0;
  for (let at = text.indexOf("@"); at >= 0; at = text.indexOf("@", at + 1)) {
    if (isWord(text[at - 1])) continue;
    const title = sorted.find((one) => text.startsWith(one, at + 1) && !(isWord(one.at(-1)) && isWord(text[at + 1 + one.length])));
    if (title === undefined) continue;
    const end = at + 1 + title.length;
    parts.push({ at: said, text: text.slice(said, at) }, { at, text: text.slice(at, end), title });
    said = end;
    at = end - 1;
  }
  return [...parts, { at: said, text: text.slice(said) }].filter(({ text }) => text !== "");
}

/** What a model reads: each mention in words that it knows. What mentions nothing stays as it was typed. */
export function promptWith(text: string, mentions: Mention[]): string {
  const by = new Map(mentions.toReversed().map(({ title, as }) => [title, as]));
  return partsOf(text, [...by.keys()])
    .map(({ text, title }) => (title === undefined ? text : (by.get(title) ?? text)))
    .join("");
}

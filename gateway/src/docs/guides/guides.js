/* Colors, search and buttons that copy. Without this script the pages are complete but for those. */
try {
  // The choice of the console, in the same browser.
  const theme = localStorage.getItem("canvas.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // The browser keeps nothing for this page.
}

const MOST_FOUND = 20;
/** Characters of a text that are shown before and after what was found. */
const BEFORE = 50;
const AFTER = 150;

addEventListener("DOMContentLoaded", () => {
  openWhereThereIsRoom();
  addCopyButtons();
  makeScrollable();
  addSearch();
});

function make(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

/** The style sheet shows both lists in wide windows from the first moment; this says so to those who do not see it. */
function openWhereThereIsRoom() {
  for (const [list, width] of [
    [".pages", 1100],
    [".contents", 1300],
  ]) {
    const details = document.querySelector(`${list} > details`);
    const room = matchMedia(`(width >= ${width}px)`);
    const open = () => details && (details.open = room.matches);
    room.addEventListener("change", open);
    open();
  }
}

function addCopyButtons() {
  for (const frame of document.querySelectorAll(".code")) {
    const button = make("button", { type: "button", className: "copy", textContent: "Copy" });
    button.addEventListener("click", async () => {
      const text = frame.querySelector("code").textContent;
      const isCopied = await navigator.clipboard.writeText(text).then(
        () => true,
        () => false,
      );
      button.textContent = isCopied ? "Copied" : "Not copied";
      setTimeout(() => (button.textContent = "Copy"), 2000);
    });
    frame.append(button);
  }
}

/** What is wider than its frame is reached by the keyboard. */
function makeScrollable() {
  const observer = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    }
  });
  for (const frame of document.querySelectorAll(".table, .code pre")) observer.observe(frame);
}

/** Every part of every page, from an index that is fetched once. What is searched for stays in the browser. */
let parts;
async function read() {
  const response = await fetch(document.body.dataset.index);
  if (!response.ok) throw new Error(`status ${response.status}`);
  const pages = await response.json();
  return pages.flatMap(([address, title, sections]) =>
    sections.map(([anchor, heading, text], at) => ({
      href: at === 0 ? address : `${address}#${anchor}`,
      title,
      heading: at === 0 ? "" : heading,
      text,
      inTitle: title.toLowerCase(),
      inHeading: heading.toLowerCase(),
      inText: text.toLowerCase(),
    })),
  );
}

/** How well a part fits; 0 if a word is missing. */
function weight({ inTitle, inHeading, inText }, words, phrase) {
  let sum = 0;
  for (const word of words) {
    const own = (inHeading.includes(word) ? 8 : 0) + (inTitle.includes(word) ? 3 : 0);
    const inside = Math.min(inText.split(word).length - 1, 3);
    if (own + inside === 0) return 0;
    sum += own + inside;
  }
  if (inHeading === phrase) sum += 20;
  else if (inHeading.startsWith(phrase)) sum += 6;
  if (words.length > 1 && inText.includes(phrase)) sum += 4;
  return sum;
}

function find(query) {
  const phrase = query.trim().toLowerCase();
  const words = phrase.split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  const found = parts.map((part) => ({ part, weight: weight(part, words, phrase) })).filter((one) => one.weight > 0);
  return found.sort((a, b) => b.weight - a.weight).map(({ part }) => ({ part, words }));
}

/** The text around the first word that was found, with all of them marked. */
function excerpt({ text, inText }, words) {
  const places = words.map((word) => inText.indexOf(word)).filter((at) => at >= 0);
  const first = places.length > 0 ? Math.min(...places) : 0;
  const start = first > BEFORE ? text.indexOf(" ", first - BEFORE) + 1 : 0;
  const cut = text.slice(start, first + AFTER);
  const pattern = new RegExp(`(${words.map((word) => word.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})`, "gi");
  const pieces = cut.split(pattern).map((piece, at) => (at % 2 === 1 ? make("mark", { textContent: piece }) : piece));
  return make("span", {}, start > 0 ? "… " : "", ...pieces, first + AFTER < text.length ? " …" : "");
}

function addSearch() {
  const box = document.querySelector("search");
  const input = box.querySelector("input");
  const found = box.querySelector(".found");
  const status = found.querySelector("p");
  const list = found.querySelector("ol");
  box.hidden = false;

  const close = () => (found.hidden = true);
  async function show() {
    found.hidden = input.value.trim() === "";
    if (found.hidden) return;
    try {
      parts ??= read();
      parts = await parts;
    } catch {
      parts = undefined;
      list.replaceChildren();
      status.textContent = "The search could not be loaded. Try again.";
      return;
    }
    const all = find(input.value);
    status.textContent = all.length === 0 ? "Nothing found." : all.length > MOST_FOUND ? `The best ${MOST_FOUND} of ${all.length}` : `${all.length} found`;
    list.replaceChildren(
      ...all.slice(0, MOST_FOUND).map(({ part, words }) => {
        const name = make("strong", {}, part.heading || part.title);
        const link = make("a", { href: part.href }, name, part.heading ? make("small", {}, part.title) : "", excerpt(part, words));
        return make("li", {}, link);
      }),
    );
    list.scrollTop = 0;
  }

  input.addEventListener("focus", () => {
    // Fetched ahead; what goes wrong is said when something is searched for.
    parts ??= read();
    Promise.resolve(parts).catch(() => (parts = undefined));
    show();
  });
  input.addEventListener("input", show);
  box.addEventListener("keydown", (event) => {
    const links = [...list.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement);
    if (event.key === "Escape") {
      input.value = "";
      close();
      input.focus();
    } else if (event.key === "Enter" && at < 0 && !event.isComposing) links[0]?.click();
    else if (event.key === "ArrowDown") (links[at + 1] ?? links[at])?.focus();
    else if (event.key === "ArrowUp") (links[at - 1] ?? input).focus();
    else return;
    event.preventDefault();
  });
  // A link to a part of this page closes the list as well.
  list.addEventListener("click", (event) => event.target.closest("a") && close());
  box.addEventListener("focusout", ({ relatedTarget }) => !box.contains(relatedTarget) && relatedTarget && close());
  addEventListener("pointerdown", ({ target }) => !box.contains(target) && close());
  addEventListener("keydown", (event) => {
    const isKey = event.key === "/" || (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey));
    if (!isKey || event.target.closest("input")) return;
    event.preventDefault();
    input.focus();
  });
}

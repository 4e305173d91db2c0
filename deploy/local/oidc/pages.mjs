/** The pages of the provider. They load nothing, from nowhere: the machine may be without a network. */
import { STATUS_CODES } from "node:http";

export const POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; frame-ancestors 'none'";

const escape = (text) => String(text).replaceAll(/[&<>"']/g, (character) => `&#${character.codePointAt(0)};`);

const STYLE = `
  :root { color-scheme: light dark; font: 15px/1.45 system-ui, sans-serif; }
  body { margin: 0; min-height: 100vh; display: grid; place-items: center; background: light-dark(#f3f3f1, #161617); color: light-dark(#1c1c1e, #ececee); }
  main { box-sizing: border-box; width: min(24rem, 100vw); padding: 1.75rem; border-radius: 14px; background: light-dark(#fff, #212123); }
  h1 { margin: 0 0 .35rem; font-size: 1.3rem; line-height: 1.25; }
  p { margin: 0 0 1.25rem; color: light-dark(#5c5c61, #a9a9af); }
  form { display: grid; gap: .5rem; margin: 0; }
  button { display: grid; gap: .1rem; padding: .7rem .9rem; border: 1px solid light-dark(#d5d5d2, #47474b); border-radius: 10px; background: none;
    color: inherit; font: inherit; text-align: start; cursor: pointer; overflow-wrap: anywhere; }
  button:hover { background: light-dark(#f6f6f4, #2b2b2e); }
  button:focus-visible { outline: 2px solid light-dark(#2b5fd9, #8fb0ff); outline-offset: 2px; }
  small { color: light-dark(#5c5c61, #a9a9af); font-size: .85rem; }
  button:not([name=person]) { text-align: center; }
  .quiet { border-color: transparent; color: light-dark(#5c5c61, #a9a9af); }`;

const page = (title, content) => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<link rel="icon" href="data:,">
<title>${escape(title)}</title>
<style>${STYLE}</style>
<main>
<h1>${escape(title)}</h1>
${content}
</main>
</html>`;

const person = ([id, { name, email, email_verified: isVerified, groups = [] }]) => `<button name="person" value="${escape(id)}">
<span>${escape(name ?? id)}</span>
<small>${[email, !isVerified && "email not verified", ...groups].filter(Boolean).map(escape).join(" · ")}</small>
</button>`;

export const choose = (people) =>
  page(
    "Who are you?",
    `<p>The local provider asks for no password.</p>
<form method="post">${[...people].map(person).join("\n")}
<button class="quiet">Cancel</button></form>`,
  );

export const signOut = (form) =>
  page(
    "Sign out of the local provider?",
    `<p>Your sessions of the service end with it. To stay signed in, close this page.</p>
${form}
<form><button form="op.logoutForm" name="logout" value="yes">Sign out</button></form>`,
  );

export const signedOut = () => page("You are signed out", "<p>At the next sign-in you choose a person again.</p>");

export const problem = (status, text) => page(STATUS_CODES[status], `<p>${escape(text)}</p>`);

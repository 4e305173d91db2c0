/** What an entry of the audit says, in words. */
import { bytes, count, day, number } from "../../format.ts";
import type { AuditEntry } from "../../person.ts";

type Details = AuditEntry["details"];
type Words = string | ((details: Details) => string);

/** The kinds of events, by what their names begin with: those of an account, and those of the service. */
export const OWN_GROUPS = {
  "signin.": "Sign-ins",
  "session.": "Sessions",
  "account.": "Account",
  "identity.": "Identities",
  "token.": "Tokens",
  "app.": "Apps",
  "connection.": "Connections",
  "canvas.": "Canvases",
  "asset.": "Pictures",
  "delivery.": "Webhooks",
  "work.": "Work",
};
export const GROUPS = { ...OWN_GROUPS, "client.": "Listed apps", "recipe.": "Recipes", "keys.": "Keys", "audit.": "Audit" };

export const OUTCOMES = { ok: "Done", refused: "Refused" } as const;

const numberIn = (value: unknown): number => (typeof value === "number" ? value : 0);
const isListed = (value: unknown): boolean => Array.isArray(value) && value.length > 0;
const WAYS: Record<string, string> = { link: "a link", token: "a token", provider: "a provider" };
const wayOf = ({ by }: Details): string => (typeof by === "string" && WAYS[by] ? ` with ${WAYS[by]}` : "");
const limitsOf = (what: string) => ({ budgets }: Details) => (isListed(budgets) ? `Limits of ${what} were set` : `Limits of ${what} were taken away`);

const WORDS: Record<string, Words> = {
  "signin.ok": (details) => `Signed in${wayOf(details)}`,
  "signin.refused": (details) => `A sign-in${wayOf(details)} was refused`,
  "signin.link": "A sign-in link was made",
  "session.ended": "A session ended",
  "session.all": ({ sessions, tokens }) => `All sessions ended: ${number(numberIn(sessions))}${tokens === true ? ", and all tokens with them" : ""}`,
  "identity.linked": "A way to sign in was linked",
  "identity.unlinked": "A way to sign in was unlinked",
  "identity.email": "The email became that of the provider",
  "identity.claim": ({ claim }) => `What the provider says of ${String(claim)} could not be used`,
  "account.created": ({ credits }) => `The account was made${numberIn(credits) > 0 ? ` with ${count(numberIn(credits), "credit")}` : ""}`,
  "account.enabled": "The account was enabled",
  "account.disabled": "The account was disabled",
  "account.role": ({ role }) => (role === "admin" ? "Made an administrator" : "Made a member, without administration"),
  "account.renamed": "The name was changed",
  "account.credit": ({ amount }) => `${count(Math.abs(numberIn(amount)), "credit")} ${numberIn(amount) < 0 ? "taken away" : "added"}`,
  "account.quota": ({ max }) => (max === undefined ? "The storage is the default again" : max === 0 ? "The storage has no limit" : `The storage is at most ${bytes(numberIn(max))}`),
  "account.budget": limitsOf("the account"),
  "account.recounted": "What is stored was counted again",
  "account.purged": "The account was deleted with all that it owned",
  "token.created": ({ expiresAt }) => `A token was made${typeof expiresAt === "string" ? `, until ${day(expiresAt)}` : ""}`,
  "token.limits": limitsOf("a token"),
  "token.revoked": "A token was revoked",
  "app.allowed": "An app was allowed",
  "app.denied": "An app was not allowed",
  "app.limits": limitsOf("an app"),
  "app.revoked": "An app was ended",
  "app.reuse_code": "An app was ended: its code was used twice",
  "app.reuse_refresh": "An app was ended: an old key of it was used again",
  "client.listed": "An app was listed",
  "client.deleted": "A listed app was deleted",
  "connection.saved": ({ provider }) => `A key of ${String(provider)} was saved`,
  "connection.deleted": "A connection was deleted",
  "canvas.shared": ({ role }) => `A canvas was shared with ${role === "editor" ? "an editor" : "a viewer"}`,
  "canvas.unshared": "A canvas is not shared with somebody any more",
  "canvas.deleted": ({ nodes }) => `A canvas was deleted with ${count(numberIn(nodes), "thing")} on it`,
  "asset.deleted": ({ bytes: size }) => `A picture was deleted${numberIn(size) > 0 ? `, ${bytes(numberIn(size))}` : ""}`,
  "asset.cleaned": "Private data was removed from pictures",
  "recipe.published": ({ version }) => `A Recipe was published, version ${number(numberIn(version))}`,
  "delivery.replayed": "A webhook was sent once more",
  "work.canceled": ({ recipe }) => `${recipe === true ? "A Recipe" : "Work"} was canceled`,
  "keys.rewrapped": "Stored keys were encrypted again",
  "audit.exported": "The audit was saved as a file",
  "audit.dropped": "Old months of the audit were dropped",
  "audit.capped": ({ refusals }) => `${count(numberIn(refusals), "more refused sign-in")} in a minute`,
};

/** One of a later release has its name. */
export function sentenceOf({ event, details }: Pick<AuditEntry, "event" | "details">): string {
  const words = Object.hasOwn(WORDS, event) ? WORDS[event] : undefined;
  return typeof words === "function" ? words(details) : (words ?? event);
}

/** Who acted, for the account `own` or for administrators. */
export function actorOf({ via, id, account }: AuditEntry["actor"], own?: string): string {
  if (account) return account.id === own ? "you" : (account.email ?? account.displayName ?? account.id);
  if (via === "command") return own === undefined ? `the command ${id ?? ""}` : "whoever runs the service";
  return via === "system" ? "the service" : "somebody unknown";
}

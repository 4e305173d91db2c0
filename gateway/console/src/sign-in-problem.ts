/** Why a sign-in with a provider did not succeed, by the code in the address of the page. */
const PROBLEMS: Record<string, string> = {
  expired: "The sign-in took too long, or was begun in another window. Try again.",
  refused: "The provider did not sign you in. Try again, or ask whoever runs this service.",
  not_admitted: "Your account at the provider may not use this service. Ask whoever runs it to let you in.",
  no_account: "There is no account for you here. Ask whoever runs this service for one.",
  email_unverified: "The provider has not verified your email address. Verify it there, and sign in again.",
  email_taken: "An account with your email address exists and is not linked to this sign-in. Sign in to it by a link, and link the provider under Settings, Sign-in.",
  disabled: "This account is disabled. Ask whoever runs this service.",
  provider_unavailable: "The provider does not answer. Try again in a moment.",
  misconfigured: "This sign-in is not set up correctly. Tell whoever runs this service.",
  identity_taken: "This identity is linked to another account. Unlink it there first.",
};

/** What the code in the query of an address means. A code that is unknown here is a refusal. */
export function problemIn(search: string): string | undefined {
  const code = new URLSearchParams(search).get("problem");
  if (code === null) return undefined;
  return Object.hasOwn(PROBLEMS, code) ? PROBLEMS[code] : PROBLEMS["refused"];
}

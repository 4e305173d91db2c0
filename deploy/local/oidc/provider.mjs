/**
 * An OpenID provider for this machine, with the library oidc-provider: people choose who they are, and there are no passwords.
 *
 *   node deploy/local/oidc/provider.mjs PACKAGES PORT ORIGIN
 *
 * PACKAGES is the directory with node_modules, PORT a port of loopback, and ORIGIN the public URL of the service. Everything is in memory.
 */
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { text } from "node:stream/consumers";

import { choose, POLICY, problem, signedOut, signOut } from "./pages.mjs";

const [packages, port, origin] = process.argv.slice(2);
if (origin === undefined) throw new Error("usage: provider.mjs PACKAGES PORT ORIGIN");
const { default: Provider } = createRequire(`${packages}/`)("oidc-provider");
const issuer = `http://localhost:${port}`;

/** Claims of the people, by `sub`. Tests change them with PUT /people/NAME. */
const people = new Map([
  ["ana", { name: "Ana", email: "ana@example.com", email_verified: true, groups: ["canvas-admins"] }],
  ["bo", { name: "Bo", email: "bo@example.com", email_verified: true, groups: ["canvas-users"] }],
  ["eve", { name: "Eve", email: "eve@example.com", email_verified: false, groups: [] }],
]);

const show = (ctx, page) => {
  ctx.set("Content-Security-Policy", POLICY);
  ctx.type = "html";
  ctx.body = page;
};

const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const provider = new Provider(issuer, {
  clients: [
    {
      client_id: "canvas",
      token_endpoint_auth_method: "none",
      redirect_uris: [`${origin}/console/oidc/main/callback`],
      backchannel_logout_uri: `${origin}/console/oidc/main/logout`,
      backchannel_logout_session_required: true,
    },
  ],
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name", "groups"] },
  cookies: { keys: [randomBytes(32).toString("hex")] },
  features: {
    backchannelLogout: { enabled: true },
    // Its pages wait for a font of another site.
    devInteractions: { enabled: false },
    rpInitiatedLogout: { logoutSource: (ctx, form) => show(ctx, signOut(form)), postLogoutSuccessSource: (ctx) => show(ctx, signedOut()) },
  },
  renderError: (ctx, { error, error_description: description }) => show(ctx, problem(ctx.status, description ?? error)),
  jwks: { keys: [{ ...privateKey.export({ format: "jwk" }), use: "sig", alg: "RS256", kid: randomBytes(8).toString("hex") }] },
  findAccount: (_, sub) => people.has(sub) && { accountId: sub, claims: () => ({ sub, ...people.get(sub) }) },
  /** The only client is the service itself, so nobody is asked for consent. */
  async loadExistingGrant({ oidc }) {
    const grant = new oidc.provider.Grant({ accountId: oidc.session.accountId, clientId: oidc.client.clientId });
    grant.addOIDCScope("openid email profile");
    await grant.save();
    return grant;
  },
  /** It calls the service alone, on loopback, to which the dispatcher of the library refuses to connect. */
  fetch: (url, { dispatcher: _, ...options }) => fetch(url, options),
  ttl: { AccessToken: 300, AuthorizationCode: 60, Grant: 3600, IdToken: 300, Interaction: 600, Session: 3600 },
});

/** Asks who signs in, and goes on with the answer. */
async function interact(request, response) {
  await provider.interactionDetails(request, response);
  if (request.method !== "POST") return send(response, 200, choose(people));
  const person = new URLSearchParams(await text(request)).get("person");
  const result = people.has(person) ? { login: { accountId: person } } : { error: "access_denied" };
  await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
}

/** Changes what the provider says about a person from now on. */
async function change(request, response, person) {
  people.set(person, JSON.parse(await text(request)));
  response.writeHead(204).end();
}

const send = (response, status, page) => response.writeHead(status, { "Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": POLICY, "Cache-Control": "no-store" }).end(page);

provider.on("server_error", (_, error) => console.error(error));
provider.on("backchannel.error", (_, error) => console.error(error));

const answer = provider.callback();
createServer((request, response) => {
  const [, kind, name] = /^\/(interaction|people)\/([\w-]+)$/.exec(request.url ?? "") ?? [];
  // An interaction ends after 10 minutes, and with a restart.
  const fail = (error) => send(response, 400, problem(400, `${error.error_description ?? error.message}. Begin the sign-in again.`));
  if (kind === "interaction") interact(request, response).catch(fail);
  else if (kind === "people" && request.method === "PUT") change(request, response, name).catch(fail);
  else answer(request, response);
}).listen(Number(port), "localhost", () => console.log(`listening at ${issuer}`));

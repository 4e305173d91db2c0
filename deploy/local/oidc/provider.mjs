/**
 * An OpenID provider for this machine, with the certified library oidc-provider: people sign in by name, with any password.
 *
 *   node deploy/local/oidc/provider.mjs PACKAGES PORT ORIGIN
 *
 * PACKAGES is the directory with node_modules, PORT a port of loopback, and ORIGIN the public URL of the service. Everything is in memory.
 */
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";

const [packages, port, origin] = process.argv.slice(2);
if (origin === undefined) throw new Error("usage: provider.mjs PACKAGES PORT ORIGIN");
const { default: Provider } = createRequire(`${packages}/`)("oidc-provider");
const issuer = `http://localhost:${port}`;

/** Claims of the people. Tests change them with PUT /people/NAME. */
const people = new Map([
  ["ana", { name: "Ana", email: "ana@example.com", email_verified: true, groups: ["canvas-admins"] }],
  ["bo", { name: "Bo", email: "bo@example.com", email_verified: true, groups: ["canvas-users"] }],
  ["eve", { name: "Eve", email: "eve@example.com", email_verified: false, groups: [] }],
]);

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
  features: { backchannelLogout: { enabled: true }, devInteractions: { enabled: true } },
  jwks: { keys: [{ ...privateKey.export({ format: "jwk" }), use: "sig", alg: "RS256", kid: "local" }] },
  findAccount: (_, sub) => people.has(sub) && { accountId: sub, claims: () => ({ sub, ...people.get(sub) }) },
  /** The only client is the service itself, so nobody is asked for consent. */
  async loadExistingGrant({ oidc }) {
    const grant = new oidc.provider.Grant({ accountId: oidc.session.accountId, clientId: oidc.client.clientId });
    grant.addOIDCScope("openid email profile");
    await grant.save();
    return grant;
  },
  fetch: (url, options) => fetch(url, options),
  ttl: { AccessToken: 300, AuthorizationCode: 60, Grant: 3600, IdToken: 300, Interaction: 600, Session: 3600 },
});

/** Changes what the provider says about a person from now on. */
async function change(request, response, name) {
  let body = "";
  for await (const chunk of request) body += chunk;
  people.set(name, JSON.parse(body));
  response.writeHead(204).end();
}

const answer = provider.callback();
createServer((request, response) => {
  const [, name] = /^\/people\/(\w+)$/.exec(request.url ?? "") ?? [];
  if (request.method === "PUT" && name !== undefined) void change(request, response, name);
  else answer(request, response);
}).listen(Number(port), "localhost", () => console.log(`listening at ${issuer}`));

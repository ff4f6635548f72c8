// A real OpenID provider (npm oidc-provider) on a free loopback port, for the tests of signing in. It has one client and signs
// everybody in whose name is given as the login. Prints its issuer as one line. The first argument is the client as JSON; the
// second may be "ES256" or "RS256".
import { createServer } from "node:http";
import { generateKeyPairSync } from "node:crypto";
import Provider from "oidc-provider";

const [client, alg = "RS256"] = process.argv.slice(2);
const pair = alg === "ES256" ? generateKeyPairSync("ec", { namedCurve: "P-256" }) : generateKeyPairSync("rsa", { modulusLength: 2048 });
const jwk = { ...pair.privateKey.export({ format: "jwk" }), alg, use: "sig", kid: "first" };

// Who signs in is also what they are: "ann.operator.acme" has the group of operators and belongs to acme.
const claimsOf = (id) => {
  const [, role = "nobody", tenant] = id.split(".");
  return { email: `${id}@example.com`, email_verified: role !== "unverified", roles: [`${role}s`], ...(tenant === undefined ? {} : { tenant }) };
};

const server = createServer();
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;
const provider = new Provider(issuer, {
  clients: [{ ...JSON.parse(client), id_token_signed_response_alg: alg }],
  jwks: { keys: [jwk] },
  claims: { openid: ["sub"], email: ["email", "email_verified", "roles", "tenant"] },
  conformIdTokenClaims: false, // what the scopes grant is in the ID token
  findAccount: (_, id) => ({ accountId: id, claims: async () => ({ sub: id, ...claimsOf(id) }) }),
  features: { devInteractions: { enabled: true } },
  pkce: { required: () => true },
});
server.on("request", provider.callback());
console.log(issuer);

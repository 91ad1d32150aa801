// A provider built on oidc-provider, with everything in memory and no audit log. Features are those that the benchmark
// compares; everything else has its default. The environment variable PLAN is the plan as JSON.
// Prints its port. Each line of input `codes N` or `tokens N` creates that many codes, or access and refresh tokens,
// without requests, and prints them as a line of JSON.
import { createPrivateKey } from "node:crypto";
import http from "node:http";
import { createInterface } from "node:readline";
import Provider from "oidc-provider";

const plan = JSON.parse(process.env.PLAN);
// Standard output is for answers; the library prints notices about defaults.
console.info = console.warn = console.error;

// As the example adapters do it, without expiry: the built-in adapter forgets entries after the first thousand.
const stored = new Map();
class MemoryAdapter {
  constructor(model) {
    this.model = model;
  }
  key(id) {
    return `${this.model}:${id}`;
  }
  async find(id) {
    return stored.get(this.key(id));
  }
  async upsert(id, payload) {
    stored.set(this.key(id), payload);
  }
  async consume(id) {
    stored.get(this.key(id)).consumed = Math.floor(Date.now() / 1000);
  }
  async destroy(id) {
    stored.delete(this.key(id));
  }
  async findByUserCode() {}
  async findByUid() {}
  async revokeByGrantId() {}
}

const key = createPrivateKey(plan.key).export({ format: "jwk" });
const users = new Map(plan.users.map((name) => [name, {
  sub: name,
  name: "Ada Lovelace",
  preferred_username: name,
  email: `${name}@example.org`,
  email_verified: true,
}]));
const scope = "openid profile email";

const server = http.createServer();
server.listen(0, "127.0.0.1", async () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    adapter: MemoryAdapter,
    clients: [{
      client_id: plan.clientId,
      client_secret: plan.clientSecret,
      redirect_uris: [plan.redirectUri],
      grant_types: [
        "authorization_code",
        "refresh_token",
        "client_credentials",
        "urn:ietf:params:oauth:grant-type:device_code",
      ],
      scope: `${scope} offline_access read-repos`,
      id_token_signed_response_alg: "ES256",
    }],
    jwks: { keys: [{ ...key, use: "sig", alg: "ES256", kid: "key" }] },
    scopes: ["openid", "offline_access", "read-repos"],
    claims: { openid: ["sub"], profile: ["name", "preferred_username"], email: ["email", "email_verified"] },
    features: {
      introspection: { enabled: true },
      clientCredentials: { enabled: true },
      deviceFlow: { enabled: true },
      devInteractions: { enabled: false },
    },
    // As the hub does it.
    issueRefreshToken: () => true,
    rotateRefreshToken: true,
    findAccount: (_, id) => ({ accountId: id, claims: () => users.get(id) }),
  });
  server.on("request", provider.callback());
  const client = await provider.Client.find(plan.clientId);
  const grants = [];
  for (const accountId of users.keys()) {
    const grant = new provider.Grant({ accountId, clientId: plan.clientId });
    grant.addOIDCScope(`${scope} offline_access`);
    grants.push([accountId, await grant.save()]);
  }

  async function createCode([accountId, grantId]) {
    const { redirectUri, codeChallenge } = plan;
    const authTime = Math.floor(Date.now() / 1000);
    const pkce = { codeChallenge, codeChallengeMethod: "S256" };
    const code = { accountId, grantId, client, scope, redirectUri, authTime, nonce: "n-0S6_WzA2Mj", ...pkce };
    return new provider.AuthorizationCode({ ...code, gty: "authorization_code" }).save();
  }

  async function createTokens([accountId, grantId]) {
    const token = { accountId, grantId, client, scope, gty: "authorization_code", claims: {} };
    const access = new provider.AccessToken({ ...token });
    const refresh = new provider.RefreshToken({ ...token, rotations: 0, iiat: Math.floor(Date.now() / 1000) });
    return { access: await access.save(), refresh: await refresh.save() };
  }

  console.log(server.address().port);
  for await (const line of createInterface({ input: process.stdin })) {
    const [kind, count] = line.split(" ");
    const create = { codes: createCode, tokens: createTokens }[kind];
    const created = [];
    for (let number = 0; number < Number(count); number += 1) {
      created.push(await create(grants[number % grants.length]));
    }
    console.log(JSON.stringify(created));
  }
  process.exit();
});

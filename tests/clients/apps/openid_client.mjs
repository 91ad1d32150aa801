// A web app that signs its users in with openid-client, and does with the tokens all that the library can do.
import http from "node:http";
import * as openid from "openid-client";

const { HUB, SITE, CLIENT_ID, CLIENT_SECRET, SCOPES, LISTEN_FD } = process.env;
const redirectUri = `${SITE}/callback`;
const secret = CLIENT_SECRET || undefined;
const authentication = secret ? undefined : openid.None();
const config = await openid.discovery(new URL(HUB), CLIENT_ID, secret, authentication, {
  execute: [openid.allowInsecureRequests],
});
// By default the library trusts the connection the ID token came over. This way it verifies the signature, too.
openid.enableNonRepudiationChecks(config);
let kept;

async function login() {
  kept = {
    pkceCodeVerifier: openid.randomPKCECodeVerifier(),
    expectedState: openid.randomState(),
    expectedNonce: openid.randomNonce(),
    maxAge: 3600,
    idTokenExpected: true,
  };
  return openid.buildAuthorizationUrl(config, {
    redirect_uri: redirectUri,
    scope: SCOPES,
    state: kept.expectedState,
    nonce: kept.expectedNonce,
    max_age: String(kept.maxAge),
    code_challenge: await openid.calculatePKCECodeChallenge(kept.pkceCodeVerifier),
    code_challenge_method: "S256",
  });
}

async function callback(address) {
  const tokens = await openid.authorizationCodeGrant(config, address, kept);
  const claims = tokens.claims();
  const userinfo = await openid.fetchUserInfo(config, tokens.access_token, claims.sub);
  const refreshed = await openid.refreshTokenGrant(config, tokens.refresh_token, { scope: "openid profile" });
  const said = { tokens, claims, userinfo, refreshed };
  if (secret) said.introspected = await openid.tokenIntrospection(config, refreshed.access_token);
  await openid.tokenRevocation(config, refreshed.refresh_token);
  said.afterwards = await openid.fetchUserInfo(config, refreshed.access_token, claims.sub).catch((error) => error.code);
  if (secret) said.introspectedAfterwards = await openid.tokenIntrospection(config, refreshed.access_token);
  return said;
}

http
  .createServer(async (request, response) => {
    const address = new URL(request.url, SITE);
    try {
      if (address.pathname === "/login") response.writeHead(302, { location: await login() }).end();
      else if (address.pathname === "/callback")
        response.setHeader("content-type", "application/json").end(JSON.stringify(await callback(address)));
      else response.writeHead(404).end();
    } catch (error) {
      console.error(error);
      const told = { error: error.error ?? error.message, description: error.error_description };
      response.setHeader("content-type", "application/json").end(JSON.stringify(told));
    }
  })
  .listen({ fd: Number(LISTEN_FD) });

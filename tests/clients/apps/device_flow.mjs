// A program without a browser of its own that signs its user in with openid-client.
import * as openid from "openid-client";

const { HUB, CLIENT_ID, CLIENT_SECRET, SCOPES } = process.env;
const secret = CLIENT_SECRET || undefined;
const authentication = secret ? openid.ClientSecretBasic(secret) : openid.None();
const config = await openid.discovery(new URL(HUB), CLIENT_ID, secret, authentication, {
  execute: [openid.allowInsecureRequests],
});
openid.enableNonRepudiationChecks(config);
const device = await openid.initiateDeviceAuthorization(config, { scope: SCOPES });
console.log(`Open ${device.verification_uri_complete} and compare the code ${device.user_code}`);
const tokens = await openid.pollDeviceAuthorizationGrant(config, device);
const claims = tokens.claims();
const userinfo = await openid.fetchUserInfo(config, tokens.access_token, claims.sub);
const refreshed = await openid.refreshTokenGrant(config, tokens.refresh_token);
console.log(JSON.stringify({ tokens, claims, userinfo, refreshed }));

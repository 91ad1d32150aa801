// Signs in with PKCE, without a server of its own, and lists the user's newest models.
import { hub, clientId, scope } from "./settings.js";

const redirectUri = location.origin + location.pathname;
const status = document.querySelector("#status");
const signIn = document.querySelector("#sign-in");

const base64url = (bytes) =>
  btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const random = () => base64url(crypto.getRandomValues(new Uint8Array(32)));

async function json(address, options) {
  const response = await fetch(address, options);
  const body = await response.json();
  if (!response.ok) throw new Error(body.error_description ?? body.error ?? `${response.status}`);
  return body;
}

async function redirectToHub(metadata) {
  const verifier = random();
  const state = random();
  // Of this tab alone, so that two tabs can sign in at once.
  sessionStorage.setItem("sign-in", JSON.stringify({ verifier, state }));
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
  const address = new URL(metadata.authorization_endpoint);
  address.search = new URLSearchParams({
    response_type: "code",
    client_id: clientId,
    redirect_uri: redirectUri,
    scope,
    state,
    code_challenge: base64url(new Uint8Array(digest)),
    code_challenge_method: "S256",
  });
  location.assign(address);
}

async function finishSignIn(metadata, answer) {
  const started = JSON.parse(sessionStorage.getItem("sign-in") ?? "{}");
  sessionStorage.removeItem("sign-in");
  // The code must not stay in the address bar and the history.
  history.replaceState(null, "", redirectUri);
  // Otherwise another site could sign the user in to its own account (state), or another hub could send the answer (iss).
  if (!started.state || answer.get("state") !== started.state || answer.get("iss") !== metadata.issuer) {
    throw new Error("This sign-in was not started here. Try again.");
  }
  if (answer.has("error")) throw new Error(answer.get("error_description") ?? answer.get("error"));
  const form = new URLSearchParams({
    grant_type: "authorization_code",
    client_id: clientId,
    redirect_uri: redirectUri,
    code: answer.get("code"),
    code_verifier: started.verifier,
  });
  return json(metadata.token_endpoint, { method: "POST", body: form });
}

async function showRepos(metadata, token) {
  const headers = { authorization: `Bearer ${token}` };
  const user = await json(metadata.userinfo_endpoint, { headers });
  const models = await json(`${hub}/api/models?author=${encodeURIComponent(user.preferred_username)}`, { headers });
  status.textContent = `Newest models of ${user.preferred_username}`;
  for (const model of models) {
    const item = document.createElement("li");
    item.textContent = model.id;
    document.querySelector("#repos").append(item);
  }
}

async function main() {
  const metadata = await json(`${hub}/.well-known/openid-configuration`);
  signIn.onclick = () => redirectToHub(metadata);
  const answer = new URLSearchParams(location.search);
  if (answer.has("state")) {
    // The token is only in memory: a reload signs in again, for which the hub asks nothing.
    const { access_token } = await finishSignIn(metadata, answer);
    await showRepos(metadata, access_token);
  } else {
    status.textContent = "Sign in to see your models.";
    signIn.hidden = false;
  }
}

main().catch((error) => {
  status.textContent = error.message;
  signIn.hidden = false;
});

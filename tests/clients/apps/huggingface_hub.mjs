// A web app that signs its users in with @huggingface/hub on its server.
import http from "node:http";
import { oauthHandleRedirect, oauthLoginUrl, whoAmI } from "@huggingface/hub";

const { HUB: hubUrl, SITE, CLIENT_ID: clientId, SCOPES: scopes, LISTEN_FD } = process.env;
let kept;

async function login() {
  kept = {};
  return oauthLoginUrl({ clientId, hubUrl, scopes, redirectUrl: `${SITE}/callback`, state: "from here", localStorage: kept });
}

async function callback(address) {
  const result = await oauthHandleRedirect({ hubUrl, redirectedUrl: address.href, ...kept });
  return { result, whoami: await whoAmI({ accessToken: result.accessToken, hubUrl }) };
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
      response.setHeader("content-type", "application/json").end(JSON.stringify({ error: error.message }));
    }
  })
  .listen({ fd: Number(LISTEN_FD) });

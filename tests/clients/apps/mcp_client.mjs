// An MCP client with the TypeScript SDK, version 1 or 2. It visits each server in turn: signs in with the hub that the
// server names, lists the tools and calls whoami. The test is the browser: it gets the address and answers with the
// address that the hub sent it back to.
import readline from "node:readline";

const { SDK, SERVERS, CLIENT_METADATA_URL, REDIRECT_URI } = process.env;
const { Client, StreamableHTTPClientTransport, UnauthorizedError } =
  SDK === "1"
    ? {
        ...(await import("@modelcontextprotocol/sdk/client/index.js")),
        ...(await import("@modelcontextprotocol/sdk/client/streamableHttp.js")),
        ...(await import("@modelcontextprotocol/sdk/client/auth.js")),
      }
    : await import("@modelcontextprotocol/client");
const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();

function providerFor() {
  const kept = {};
  return {
    kept,
    clientMetadataUrl: CLIENT_METADATA_URL,
    redirectUrl: REDIRECT_URI,
    clientMetadata: { client_name: "Agent", redirect_uris: [REDIRECT_URI], token_endpoint_auth_method: "none" },
    clientInformation: () => kept.client,
    saveClientInformation: (client) => void (kept.client = client),
    tokens: () => kept.tokens,
    saveTokens: (tokens) => void (kept.tokens = tokens),
    saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
    codeVerifier: () => kept.verifier,
    saveDiscoveryState: (state) => void (kept.discovery = state),
    discoveryState: () => kept.discovery,
    redirectToAuthorization: (address) => console.log(`OPEN ${address}`),
  };
}

async function visit(address) {
  const authProvider = providerFor();
  const connect = async () => {
    const transport = new StreamableHTTPClientTransport(new URL(address), { authProvider });
    const client = new Client({ name: "agent", version: "1.0.0" });
    try {
      await client.connect(transport);
      return client;
    } catch (error) {
      if (!(error instanceof UnauthorizedError)) throw error;
      const { value } = await lines.next();
      const answer = new URL(value).searchParams;
      await transport.finishAuth(SDK === "1" ? answer.get("code") : answer);
      return undefined;
    }
  };
  const client = (await connect()) ?? (await connect());
  const { tools } = await client.listTools();
  const result = await client.callTool({ name: "whoami", arguments: {} });
  await client.close();
  return { tools: tools.map((tool) => tool.name), said: result.content[0].text, ...authProvider.kept.tokens };
}

for (const address of JSON.parse(SERVERS)) {
  const outcome = await visit(address).catch((error) => ({ error: error.message }));
  console.log(`DONE ${JSON.stringify(outcome)}`);
}
process.exit(0);

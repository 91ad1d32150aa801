// A webhook receiver in Node, without packages: it verifies the signature (Standard Webhooks) before it reads the body.
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const { WEBHOOK_SECRET, PORT = "7860" } = process.env;
const MAX_BYTES = 2 ** 20;
const MAX_AGE_SECONDS = 300;
if (!WEBHOOK_SECRET) throw new Error("Set WEBHOOK_SECRET to the secret of the webhook.");
// A secret with this prefix is base64; any other is used as it is.
const key = WEBHOOK_SECRET.startsWith("whsec_") ? Buffer.from(WEBHOOK_SECRET.slice(6), "base64") : WEBHOOK_SECRET;

// The ids of the last deliveries: the hub sends one again if it got no answer. A real receiver stores them.
const seen = new Set();

function isAuthentic(headers, body) {
  const names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
  const [id, sentAt, signatures] = names.map((name) => headers[name] ?? "");
  // Written so that NaN is rejected too.
  if (!(Math.abs(Date.now() / 1000 - Number(sentAt)) <= MAX_AGE_SECONDS)) return false;
  const expected = createHmac("sha256", key).update(`${id}.${sentAt}.`).update(body).digest();
  // There are several while the secret is being replaced.
  return signatures.split(" ").some((signature) => {
    const given = Buffer.from(signature.startsWith("v1,") ? signature.slice(3) : "", "base64");
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}

async function readBody(request) {
  const parts = [];
  let size = 0;
  for await (const part of request) {
    size += part.length;
    if (size > MAX_BYTES) return null;
    parts.push(part);
  }
  return Buffer.concat(parts);
}

function handle({ event, repo }) {
  console.log(`${event.scope} ${event.action} in ${repo.name}`);
}

const server = createServer(async (request, response) => {
  try {
    const body = await readBody(request);
    if (body === null) return response.writeHead(413, { connection: "close" }).end();
    if (request.method !== "POST") return response.writeHead(405).end();
    if (!isAuthentic(request.headers, body)) return response.writeHead(401).end();
    const id = request.headers["webhook-id"];
    if (!seen.has(id)) {
      handle(JSON.parse(body));
      seen.add(id);
      if (seen.size > 10_000) seen.delete(seen.values().next().value);
    }
    response.writeHead(204).end();
  } catch (error) {
    console.error(error);
    // The hub tries again later.
    response.writeHead(500).end();
  }
});
server.requestTimeout = 20_000;
server.listen(Number(PORT), "127.0.0.1", () => console.log(`POST http://127.0.0.1:${server.address().port}/`));

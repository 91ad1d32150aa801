// Webhooks built on BullMQ: a job for each event creates a job for each webhook, which posts a signed request. Job ids
// prevent duplicate deliveries of a repeated event; finished jobs are retained, as the hub's deliveries are.
// The environment variable PLAN is the plan as JSON. `deliver` runs until it is terminated. `commit` adds events after
// the first line of input and prints `done` when the results of all deliveries are stored.
import { createHmac } from "node:crypto";
import http from "node:http";
import { createInterface } from "node:readline";
import { Queue, Worker } from "bullmq";

const plan = JSON.parse(process.env.PLAN);
const connection = { path: plan.socket, maxRetriesPerRequest: null };
const key = Buffer.from(plan.secret.slice("whsec_".length), "base64");
const agent = new http.Agent({ keepAlive: true, maxSockets: plan.atOnce });
// BullMQ's scripts accept only a few thousand arguments per call.
const CHUNK = 1000;

function post(id, body) {
  const timestamp = Math.floor(Date.now() / 1000).toString();
  const signature = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
  const headers = {
    "Content-Type": "application/json",
    "Content-Length": Buffer.byteLength(body),
    "X-Webhook-Secret": plan.secret,
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": `v1,${signature}`,
  };
  return new Promise((resolve, reject) => {
    const request = http.request(plan.url, { method: "POST", agent, headers, timeout: 15000 }, (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode));
    });
    request.on("error", reject);
    request.end(body);
  });
}

async function deliver() {
  const deliveries = new Queue("deliveries", { connection });
  const options = { attempts: 12, backoff: { type: "exponential", delay: 5000 } };
  const fanOut = async (job) => {
    for (let first = 0; first < plan.webhooks; first += CHUNK) {
      const numbers = Array.from({ length: Math.min(CHUNK, plan.webhooks - first) }, (_, at) => first + at);
      await deliveries.addBulk(
        numbers.map((number) => ({
          name: "delivery",
          data: { body: job.data.body },
          opts: { ...options, jobId: `${job.id}-${number}` },
        })),
      );
    }
  };
  const send = async (job) => {
    const status = await post(job.id, job.data.body);
    if (status >= 300) throw new Error(`status ${status}`);
    return { status };
  };
  const workers = [
    new Worker("events", fanOut, { connection, concurrency: plan.atOnce }),
    new Worker("deliveries", send, { connection, concurrency: plan.atOnce }),
  ];
  for (const worker of workers) worker.on("error", (error) => console.error(error));
  await Promise.all(workers.map((worker) => worker.waitUntilReady()));
  console.log("ready");
}

async function commit() {
  const events = new Queue("events", { connection });
  const deliveries = new Queue("deliveries", { connection });
  const before = await deliveries.getCompletedCount();
  console.log("ready");
  for await (const _ of createInterface({ input: process.stdin })) break;
  const created = Array.from({ length: plan.events }, () => ({ name: "event", data: { body: plan.body } }));
  for (let first = 0; first < created.length; first += CHUNK) await events.addBulk(created.slice(first, first + CHUNK));
  while ((await deliveries.getCompletedCount()) < before + plan.events * plan.webhooks)
    await new Promise((resolve) => setTimeout(resolve, 10));
  console.log("done");
  process.exit(0);
}

await (plan.role === "commit" ? commit() : deliver());

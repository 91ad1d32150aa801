// The calls of @huggingface/hub about collections: HUB, TOKEN and OTHERS_TOKEN are read from the environment.
// The package exports only three of these six functions; `call` sends the requests of the others.
import assert from "node:assert/strict";
import { createCollection, createRepo, deleteCollection, listCollections } from "@huggingface/hub";

const { HUB: hubUrl, TOKEN: accessToken, OTHERS_TOKEN } = process.env;
const as = { hubUrl, accessToken };
const refused = (status) => (error) =>
  error.statusCode === status || assert.fail(`${error.statusCode}: ${error.message}`);
const slugs = async (params) => {
  const found = [];
  for await (const collection of listCollections(params)) found.push(collection.slug);
  return found;
};
const call = async (method, path, body, token = accessToken) => {
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  return fetch(`${hubUrl}/api/collections/${path}`, { method, headers, body: body && JSON.stringify(body) });
};

await createRepo({ repo: "ada/js-listed", ...as });
const collection = { title: "From JavaScript", namespace: "ada", description: "A test", private: false };
const { slug } = await createCollection({ collection, ...as });
assert.match(slug, /^ada\/from-javascript-[0-9a-f]{24}$/);
await assert.rejects(createCollection({ collection, ...as }), refused(409));

const itself = { item: { type: "collection", id: slug.slice(-24) }, note: "Itself" };
assert.equal((await call("POST", `${slug}/items`, itself)).ok, true);
const model = { item: { type: "model", id: "ada/js-listed" }, note: undefined };
assert.equal((await call("POST", `${slug}/items`, model)).ok, true);
assert.equal((await call("POST", `${slug}/items`, model, OTHERS_TOKEN)).status, 403);
const info = await (await call("GET", slug)).json();
assert.deepEqual(info.items.map((item) => [item.type, item.id, item.position]), [
  ["collection", slug.slice(-24), 0],
  ["model", "ada/js-listed", 1],
]);
assert.deepEqual(info.items[0].note, { html: "Itself", text: "Itself" });
assert.equal(info.owner.name, "ada");
assert.equal(info.shareUrl, `${hubUrl}/collections/${slug}`);

const search = { owner: ["ada", "acme"], item: ["models/ada/js-listed"], q: "javascript" };
assert.deepEqual(await slugs({ search, sort: "trending", hubUrl }), [slug]);
assert.deepEqual(await slugs({ search: { owner: ["acme"] }, limit: 5, hubUrl }), []);

assert.equal((await call("DELETE", `${slug}/items/${info.items[0]._id}`)).ok, true);
assert.equal((await (await call("GET", slug)).json()).items.length, 1);
await deleteCollection({ slug, ...as });
assert.equal((await call("GET", slug)).status, 404);
console.log("done");

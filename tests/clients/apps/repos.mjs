// What people do with @huggingface/hub on repos, on a server: HUB, TOKEN and OTHERS_TOKEN come from the environment.
// Prints a JSON object of what failed, which is empty.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { mkdtemp, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import {
  checkRepoAccess,
  commit,
  countCommits,
  createBranch,
  createRepo,
  datasetInfo,
  deleteBranch,
  deleteFile,
  deleteFiles,
  deleteRepo,
  downloadFile,
  downloadFileToCacheDir,
  fileDownloadInfo,
  fileExists,
  listCommits,
  listDatasets,
  listFiles,
  listModels,
  listSpaces,
  modelInfo,
  parseSafetensorsMetadata,
  pathsInfo,
  repoExists,
  snapshotDownload,
  spaceInfo,
  uploadFile,
  uploadFiles,
  uploadFilesWithProgress,
  whoAmI,
} from "@huggingface/hub";

const { HUB: hubUrl, TOKEN: accessToken, OTHERS_TOKEN } = process.env;
const as = { hubUrl, accessToken };
const other = { hubUrl, accessToken: OTHERS_TOKEN };
const repo = "ada/js";
const count = 12 * 1024 * 1024;
const header = Buffer.from(JSON.stringify({ w: { dtype: "U8", shape: [count], data_offsets: [0, count] } }));
const length = Buffer.alloc(8);
length.writeBigUInt64LE(BigInt(header.length));
const weights = Buffer.concat([length, header, ...Array(12).fill(randomBytes(1024 * 1024))]);

const sha256 = (data) => createHash("sha256").update(data).digest("hex");
const every = async (things) => {
  const found = [];
  for await (const thing of things) found.push(thing);
  return found;
};
const content = async (name, more = {}) => {
  const blob = await downloadFile({ repo, path: name, ...as, ...more });
  return blob && Buffer.from(await blob.arrayBuffer());
};
const refused = (status) => (error) =>
  error.statusCode === status || assert.fail(`${error.statusCode}: ${error.message}`);

const checks = {
  async create() {
    assert.equal((await whoAmI(as)).name, "ada");
    const made = await createRepo({ repo, license: "mit", ...as });
    assert.equal(made.repoUrl, `${hubUrl}/${repo}`);
    assert.match(made.id, /^[0-9a-f]{24}$/);
    await assert.rejects(createRepo({ repo, ...as }), refused(409));
    assert.match(String(await content("README.md")), /license: mit/);
    assert.equal(await repoExists({ repo, ...as }), true);
    assert.equal(await repoExists({ repo: "ada/nowhere", ...as }), false);
    assert.equal(await repoExists({ repo: "ada/nowhere", hubUrl }), false);
    const files = [{ path: "hello.txt", content: new Blob(["hello"]) }];
    await createRepo({ repo: { type: "dataset", name: "ada/js-rows" }, private: true, files, ...as });
    assert.equal((await datasetInfo({ name: "ada/js-rows", ...as })).private, true);
    await createRepo({ repo: "spaces/ada/js-shown", sdk: "static", ...as });
    assert.equal((await spaceInfo({ name: "ada/js-shown", ...as })).sdk, "static");
  },

  async upload() {
    await uploadFile({ repo, file: { path: "sub/a b.txt", content: new Blob(["one"]) }, ...as });
    const files = [
      { path: "model.safetensors", content: new Blob([weights]) },
      { path: "empty.txt", content: new Blob([]) },
      { path: "config.json", content: new Blob(['{"a": 1}\n']) },
    ];
    const done = await uploadFiles({ repo, files, commitTitle: "Many", ...as });
    assert.equal(done.commit.url, `${hubUrl}/${repo}/commit/${done.commit.oid}`);
    const late = { path: "late.safetensors", content: new Blob([weights.subarray(1)]) };
    const steps = await every(uploadFilesWithProgress({ repo, files: [late], ...as }));
    assert.ok(steps.some((step) => step.event === "phase" && step.phase === "committing"));
    assert.equal(sha256(await content("model.safetensors")), sha256(weights));
    assert.equal(sha256(await content("late.safetensors", { xet: false })), sha256(weights.subarray(1)));
    assert.equal((await content("empty.txt")).length, 0);
    assert.equal(String(await content("sub/a b.txt")), "one");
  },

  async download() {
    const blob = await downloadFile({ repo, path: "model.safetensors", ...as });
    assert.equal(blob.size, weights.length);
    const part = Buffer.from(await blob.slice(5_000_000, 5_001_000).arrayBuffer());
    assert.deepEqual(part, weights.subarray(5_000_000, 5_001_000));
    assert.equal(await downloadFile({ repo, path: "nowhere.txt", ...as }), null);
    const info = await fileDownloadInfo({ repo, path: "model.safetensors", ...as });
    assert.deepEqual([info.size, info.etag], [weights.length, `"${sha256(weights)}"`]);
    assert.equal(await fileExists({ repo, path: "model.safetensors", ...as }), true);
    assert.equal(await fileExists({ repo, path: "nowhere.txt", ...as }), false);
    const cacheDir = await mkdtemp(path.join(tmpdir(), "js-"));
    const kept = await downloadFileToCacheDir({ repo, path: "config.json", cacheDir, ...as });
    assert.equal(String(await readFile(kept)), '{"a": 1}\n');
    const whole = await snapshotDownload({ repo, cacheDir, ...as });
    assert.equal(sha256(await readFile(path.join(whole, "model.safetensors"))), sha256(weights));
    assert.equal(String(await readFile(path.join(whole, "sub/a b.txt"))), "one");
    const found = await parseSafetensorsMetadata({ repo, computeParametersCount: true, ...as });
    assert.deepEqual(found.parameterCount, { U8: count });
  },

  async list() {
    const files = await every(listFiles({ repo, recursive: true, expand: true, ...as }));
    const large = files.find((file) => file.path === "model.safetensors");
    assert.deepEqual([large.size, large.lfs.oid, large.lastCommit.title], [weights.length, sha256(weights), "Many"]);
    assert.deepEqual((await every(listFiles({ repo, path: "sub", ...as }))).map((file) => file.path), ["sub/a b.txt"]);
    const some = await pathsInfo({ repo, paths: ["config.json", "nowhere", "sub"], ...as });
    assert.deepEqual(some.map((file) => file.path).sort(), ["config.json", "sub"]);
    const models = await every(listModels({ search: { owner: "ada", query: "js" }, limit: 10, ...as }));
    assert.ok(models.some((model) => model.name === repo));
    assert.ok((await every(listDatasets({ search: { owner: "ada" }, ...as }))).some((set) => set.private));
    assert.deepEqual(await every(listDatasets({ search: { owner: "ada" }, ...other })), []);
    assert.equal((await every(listSpaces({ search: { owner: "ada" }, ...as }))).length, 1);
    assert.equal((await modelInfo({ name: repo, additionalFields: ["author", "cardData"], ...as })).author, "ada");
    const commits = await every(listCommits({ repo, ...as }));
    assert.equal(commits.at(-1).title, "initial commit");
    assert.equal(await countCommits({ repo, revision: "main", ...as }), commits.length);
    assert.equal(String(await content("config.json", { revision: commits[0].oid })), '{"a": 1}\n');
  },

  async change() {
    const operations = [
      { operation: "addOrUpdate", path: "new.txt", content: new Blob(["new"]) },
      { operation: "delete", path: "empty.txt" },
    ];
    const done = await commit({ repo, title: "Both", operations, ...as });
    assert.equal(await fileExists({ repo, path: "empty.txt", ...as }), false);
    const stale = { repo, title: "Late", operations: [operations[0]], parentCommit: "0".repeat(40), ...as };
    await assert.rejects(commit(stale), refused(412));
    await deleteFile({ repo, path: "new.txt", ...as });
    await deleteFiles({ repo, paths: ["late.safetensors", "sub/a b.txt"], ...as });
    await createBranch({ repo, branch: "old", revision: done.commit.oid, ...as });
    assert.equal(await fileExists({ repo, path: "new.txt", revision: "old", ...as }), true);
    await uploadFile({ repo, branch: "old", file: { path: "old.txt", content: new Blob(["old"]) }, ...as });
    assert.equal(String(await content("old.txt", { revision: "old" })), "old");
    assert.deepEqual((await every(listFiles({ repo, revision: "old", path: "sub", ...as }))).length, 1);
    await deleteBranch({ repo, branch: "old", ...as });
    const idea = { repo, file: { path: "idea.txt", content: new Blob(["idea"]) }, isPullRequest: true, ...other };
    assert.equal((await uploadFile(idea)).pullRequestUrl, `${hubUrl}/${repo}/discussions/1`);
    assert.equal(String(await content("idea.txt", { revision: "refs/pr/1" })), "idea");
    await assert.rejects(uploadFile({ ...idea, isPullRequest: false }), refused(403));
  },

  async remove() {
    await checkRepoAccess({ repo, ...as });
    await assert.rejects(checkRepoAccess({ repo: "datasets/ada/js-rows", ...other }), refused(404));
    await assert.rejects(checkRepoAccess({ repo: "datasets/ada/js-rows", hubUrl }), refused(401));
    await assert.rejects(deleteRepo({ repo, ...other }), refused(403));
    await deleteRepo({ repo, ...as });
    assert.equal(await repoExists({ repo, ...as }), false);
    await assert.rejects(deleteRepo({ repo, ...as }), refused(404));
  },
};

const failed = {};
for (const [name, check] of Object.entries(checks)) {
  try {
    await check();
  } catch (error) {
    failed[name] = error.stack + (error.url ? ` at ${error.url}` : "");
  }
}
console.log(JSON.stringify(failed));

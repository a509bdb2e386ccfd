/** Faulty servers and full storage: a page gets the right model, or the right error. */

import { once } from "node:events";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { deepHeader } from "../test-support/checkpoint.js";
import { drawNumbers } from "../test-support/draw-requests.js";
import { IS_FULL, REPEAT, SEED } from "../test-support/selection.js";
import { beginLoad, keptFiles, tryStory } from "../test-support/store-page.js";
import {
  beginWorkersWith,
  CHUNK,
  COMING,
  openProfile,
  SHORT,
  sha256,
  skipWaits,
} from "../test-support/store-stage.js";
import { openNextTab, page, prepareTabs, stage } from "../test-support/store-tabs.js";

const NAME = "large.safetensors";
const PATH = `/models/${NAME}`;
const ALWAYS = Number.POSITIVE_INFINITY;

/** A file of this name has a header, and weights that are not there. */
const HUGE = "/models/huge.safetensors";

/** Connections that break at bytes that are drawn. */
const CUTS = IS_FULL ? 20 : 6;

/** @type {string} */
let source;

prepareTabs();
beforeEach(() => {
  source = stage.url + PATH;
  stage.models.put(PATH, stage.large, '"one"');
});
afterEach(() => {
  stage.models.manners = { cors: { exposes: false } };
});

const tell = (from = source, load = {}) => page.evaluate(tryStory, { ...SHORT, source: from, load });

/** Stored files of the model, and that no request is pending. */
async function kept(name = NAME) {
  const files = await page.evaluate(keptFiles, true);
  expect(Object.keys(files).filter((path) => COMING.test(path))).toEqual([]);
  return Object.entries(files).find(([path]) => path.endsWith(`/${name}`))?.[1];
}

/** The story and the stored bytes are right. */
async function expectLoaded(bytes = stage.large) {
  const { text, message, progress } = await tell();
  expect(text ?? message).toBe(bytes === stage.small ? stage.texts.small : stage.texts.large);
  expect(progress).toMatchObject({ loadedBytes: bytes.length, totalBytes: bytes.length });
  expect(await kept()).toBe(sha256(bytes));
}

/** It fails with a code and a message, and then the server's next file loads, in the same page. @param {string} code @param {RegExp} message */
async function expectFailed(code, message) {
  const failed = await tell();
  expect(failed).toMatchObject({ code, message: expect.stringMatching(message) });
  stage.models.clearRules();
  stage.models.put("/models/next.safetensors", stage.small, '"next"');
  expect((await tell(`${stage.url}/models/next.safetensors`)).text).toBe(stage.texts.small);
  return failed;
}

/** Another model of the same size, with the same story. */
function changed() {
  const bytes = Buffer.from(stage.large);
  bytes[bytes.length - 3000] = bytes[bytes.length - 3000] === 0x12 ? 0x24 : 0x12;
  return bytes;
}

/** Serves the header of a model, and nothing after it. @param {number} layers */
function serveHeader(layers) {
  const { header, bytes } = deepHeader(stage.large, layers);
  stage.models.put(HUGE, header, '"huge"');
  stage.models.ruleOfAll(HUGE, ALWAYS, { saysMore: bytes - header.length, stall: header.length });
  return { header, bytes };
}

/** Requested ranges as multiples of the chunk size; resumed ones have a fraction. */
const parts = () =>
  stage.models.starts(PATH).map((start) => (start === undefined ? undefined : start / CHUNK));

/** The part that a request belongs to. @param {{ start?: number | undefined }} asked */
const inPart = ({ start = 0 }) => Math.floor(start / CHUNK);

describe("a server that", () => {
  it("drops a connection gets a request for the rest of the range", async () => {
    stage.models.ruleAt(PATH, CHUNK, 1, { breakAfter: CHUNK >> 1 });
    await expectLoaded();
    // A browser may drop the last bytes before the end.
    const [first, second, rest = 0, third] = parts();
    expect([first, second, third]).toEqual([0, 1, 2]);
    expect(rest).toBeGreaterThanOrEqual(1);
    expect(rest).toBeLessThanOrEqual(1.5);
  });

  it(`drops connections at ${CUTS} random bytes sends only what is missing (${REPEAT})`, async () => {
    const cuts = drawNumbers(CUTS, SEED, stage.large.length).filter((at) => at % CHUNK !== 0);
    stage.models.cutAt(PATH, cuts);
    await expectLoaded();
    const asked = stage.models.requests.filter(({ start }) => start !== undefined);
    expect(asked).toHaveLength(Math.ceil(stage.large.length / CHUNK) + cuts.length);
    for (const [index, { start = 0 }] of asked.entries()) {
      // The latest request of the same part, which this one continues.
      const before = asked.slice(0, index).findLast((one) => inPart(one) === inPart({ start }));
      const { start: from = inPart({ start }) * CHUNK, sent = 0 } = before ?? {};
      expect(start).toBeGreaterThanOrEqual(from);
      expect(start).toBeLessThanOrEqual(from + sent);
    }
    // Bytes under way are lost with a connection. To request parts from their beginnings would take several times this.
    expect(stage.models.sent).toBeLessThan(2 * stage.large.length);
    console.log(`${CUTS} cuts: ${stage.models.sent - stage.large.length} bytes sent twice`);
  });

  it("drops connections before the first byte gets another request", async () => {
    stage.models.ruleAt(PATH, 0, 2, { breakAfter: 0 });
    await expectLoaded();
    expect(parts()).toEqual([0, 0, 0, 1, 2]);
  });

  it.each([
    ["says that more will come", { saysMore: 1000 }],
    ["sends less than was asked for", { fewer: 1000 }],
  ])("%s gets a request for the rest", async (_, act) => {
    stage.models.ruleAt(PATH, CHUNK, 1, act);
    await expectLoaded();
    expect(parts().length).toBeGreaterThan(3);
  });

  it("sends too many bytes gets another request", async () => {
    stage.models.ruleAt(PATH, CHUNK, 1, { more: 1000 });
    await expectLoaded();
  });

  it("corrects a wrong size is believed", async () => {
    stage.models.ruleOfAll(PATH, 1, { saysMore: 1000 });
    await expectLoaded();
  });

  it.each(["the same size", "another size"])(
    "changes a file of %s midway gives the new one",
    async (size) => {
      const bytes = size === "the same size" ? changed() : stage.small;
      stage.models.ruleAt(PATH, CHUNK, 1, { become: { bytes, etag: '"two"' } });
      await expectLoaded(bytes);
    },
  );

  it("keeps changing a file fails", async () => {
    for (let i = 0; i < 30; i += 1) {
      const bytes = i % 2 === 0 ? changed() : stage.large;
      stage.models.ruleAt(PATH, CHUNK, 1, { become: { bytes, etag: `"${i}"` } });
    }
    await expectFailed("network", /keeps changing during the download/);
  });

  it("answers 500 and 503 gets another request", async () => {
    stage.models.ruleOfAll(PATH, 1, { status: 503 });
    stage.models.ruleAt(PATH, 0, 1, { status: 500 });
    await expectLoaded();
    expect(parts()).toEqual([0, 0, 1, 2]);
  });

  it("answers 429 gets another request after its delay", async () => {
    await skipWaits(page, 2000);
    stage.models.ruleAt(PATH, 0, 1, { status: 429, headers: { "retry-after": "2" } });
    await expectLoaded();
    expect(parts()).toEqual([0, 0, 1, 2]);
    await expect.poll(() => page.evaluate(() => /** @type {any} */ (globalThis).waits)).toEqual([2000]);
  });

  it("answers 429 for an hour fails at once", async () => {
    stage.models.ruleAt(PATH, 0, ALWAYS, { status: 429, headers: { "retry-after": "3600" } });
    await expectFailed("network", /429.* wait 3600 s/);
  });

  it.each([
    [403, "network", /answered 403/],
    [404, "not-found", /no such file/],
  ])("answers %i fails at once", async (status, code, message) => {
    stage.models.ruleOfAll(PATH, ALWAYS, { status });
    await expectFailed(code, message);
  });

  it.each(["none.safetensors", "none/"])("answers with an HTML page fails: %s", async (name) => {
    stage.models.manners.pages = true;
    source = `${stage.url}/models/${name}`;
    await expectFailed("not-found", /none.*; the server answered with an HTML page.*check the path/);
  });

  it("has no range support sends the file once", async () => {
    stage.models.manners.ranges = false;
    await expectLoaded();
    expect(stage.models.sent).toBeLessThan(2 * stage.large.length);
  });

  it("has no range support and drops the connection gets another request", async () => {
    stage.models.manners.ranges = false;
    stage.models.rule(PATH, 1, { breakAfter: stage.large.length >> 1 });
    await expectLoaded();
  });

  it("compresses whole files gets range requests", async () => {
    stage.models.manners.gzip = true;
    await expectLoaded();
  });

  it("compresses everything serves the model, which is not stored", async () => {
    stage.models.manners.gzip = true;
    stage.models.manners.ranges = false;
    const { text, message } = await tell();
    expect(text ?? message).toBe(stage.texts.large);
    expect(await kept()).toBeUndefined();
  });

  it("has half a file fails, and works when the file is complete", async () => {
    stage.models.put(PATH, stage.large.subarray(0, stage.large.length >> 1), '"half"');
    await expectFailed("truncated", /large\.safetensors/);
    stage.models.put(PATH, stage.large, '"one"');
    await expectLoaded();
  });

  it("has an invalid model fails, and nothing of it is stored", async () => {
    stage.models.put(PATH, Buffer.alloc(100_000, 7), '"seven"');
    await expectFailed("bad-checkpoint", /large\.safetensors/);
    expect(await kept()).toBeUndefined();
  });
});

describe("another origin with hidden headers", () => {
  beforeEach(() => {
    source = stage.models.at(PATH);
  });

  it("gets requests without preflight, one for each byte", async () => {
    await expectLoaded();
    expect(parts()).toEqual([0, 1, 2]);
    expect(stage.models.requests.filter(({ method }) => method === "OPTIONS")).toEqual([]);
    expect(stage.models.sent).toBe(stage.large.length);
  });

  it("may drop connections, lack range support, and change its file's size", async () => {
    stage.models.ruleAt(PATH, CHUNK, 1, { breakAfter: 1000 });
    stage.models.ruleAt(PATH, 2 * CHUNK, 1, { ignoreRange: true });
    await expectLoaded();
    stage.models.put(PATH, stage.small, '"two"');
    await expectLoaded(stage.small);
  });

  it("may refuse CORS requests", async () => {
    stage.models.manners = {};
    const header = `"Access-Control-Allow-Origin: ${stage.url}"`;
    await expectFailed("network", new RegExp(`large\\.safetensors: the request failed: .*${header}`));
  });
});

describe("wrong bytes against known hashes", () => {
  /** A folder with the manifest of a store. */
  function mirror() {
    const digests = [0, 1, 2].map((i) => sha256(stage.large.subarray(i * CHUNK, (i + 1) * CHUNK)));
    const [model, revision] = ["example.org/a/b", "0123456789abcdef"];
    const file = { name: NAME, bytes: stage.large.length, sha256: sha256(stage.large) };
    const files = [{ ...file, etag: '"x"', chunk_bytes: CHUNK, chunks: digests }];
    const about = { source: "https://example.org/a/b", pulled: "2026-11-21T17:00:00Z", complete: true };
    const manifest = JSON.stringify({ format: 1, model, revision, ...about, files });
    stage.models.put("/models/mirror/manifest.json", manifest);
    stage.models.put(`/models/mirror/${NAME}`, stage.large, '"y"');
    source = `${stage.url}/models/mirror/`;
  }

  it("of ranges lead to further requests of those ranges", async () => {
    mirror();
    stage.models.ruleAt(`/models/mirror/${NAME}`, CHUNK, 1, { wrong: true });
    await expectLoaded();
    expect(stage.models.starts(`/models/mirror/${NAME}`)).toEqual([0, CHUNK, CHUNK, 2 * CHUNK]);
  });

  it("of ranges fail while they stay wrong, and load when they are right", async () => {
    mirror();
    stage.models.ruleAt(`/models/mirror/${NAME}`, CHUNK, ALWAYS, { wrong: true });
    await expectFailed("bad-checkpoint", /wrong bytes in chunk 1: expected SHA-256/);
    stage.models.takeRequests();
    await expectLoaded();
    // The other parts are there.
    expect(stage.models.starts(`/models/mirror/${NAME}`)).toContain(CHUNK);
    expect(stage.models.starts(`/models/mirror/${NAME}`).length).toBeLessThan(3);
  });
});

describe("storage without room", () => {
  /** @type {Awaited<ReturnType<typeof openProfile>>} */
  let profile;

  beforeEach(async () => {
    profile = await openProfile();
    await openNextTab(profile.context);
  });
  afterEach(() => profile.remove());

  /** @param {number} [quotaSize] */
  async function limit(quotaSize) {
    const session = await page.context().newCDPSession(page);
    const origin = { origin: stage.url };
    const room = quotaSize === undefined ? origin : { ...origin, quotaSize };
    await session.send("Storage.overrideQuotaForOrigin", room);
  }

  const list = () => page.evaluate(() => /** @type {any} */ (globalThis).setun.models.list());

  /** Bytes of the model that are kept. */
  const bytes = async () => (await list())[0]?.bytes ?? 0;

  it("is an error with the missing bytes and a remedy", async () => {
    await limit(10 << 20);
    const { code, message } = await tell();
    expect(code).toBe("storage-full");
    const [, missing] =
      /no room .*: (\d+) bytes are still to be written.* `store: false`/.exec(message ?? "") ?? [];
    const there = await bytes();
    expect(there).toBeLessThanOrEqual(CHUNK);
    expect(Number(missing)).toBe(stage.large.length - there);
    expect((await tell(source, { store: false })).text).toBe(stage.texts.large);
  });

  it("of 50 MB refuses 3 GB before their first byte, and takes a model that fits", async () => {
    // Chromium's own estimate has 10 GiB whatever the quota is.
    await beginWorkersWith(
      page,
      "StorageManager.prototype.estimate = async () => ({ quota: 5e7, usage: 0 });",
    );
    await limit(50_000_000);
    const { bytes: huge } = serveHeader(950);
    const { code, message } = await tell(stage.url + HUGE);
    expect([code, message]).toEqual([
      "storage-full",
      expect.stringMatching(`no room .*: ${huge} bytes are still .* 'store: false'`.replaceAll("'", "`")),
    ]);
    expect(huge).toBeGreaterThan(3e9);
    expect(stage.models.sent).toBe(0);
    expect(stage.models.takeRequests().map(({ method }) => method)).toEqual(["HEAD"]);
    await expectLoaded();
    expect(await list()).toMatchObject([{ complete: true, bytes: stage.large.length }]);
  });

  it("that runs out during a download keeps the stored chunks", async () => {
    const limited = new AbortController();
    stage.models.ruleAt(PATH, 2 * CHUNK, 1, { after: once(limited.signal, "abort") });
    await page.evaluate(beginLoad, { source });
    await expect.poll(bytes).toBe(2 * CHUNK);
    await limit(1 << 20);
    limited.abort();
    expect(await page.evaluate(() => /** @type {any} */ (globalThis).ended)).toBe("storage-full");
    expect(await bytes()).toBe(2 * CHUNK);
    expect((await tell(source, { store: false })).text).toBe(stage.texts.large);
    await limit();
    stage.models.takeRequests();
    await expectLoaded();
    expect(parts()).toEqual([2]);
  });
});

describe("a model that WebAssembly cannot hold", () => {
  it("is refused after its header, and the next one runs", async () => {
    const { header } = serveHeader(1500);
    const { code, message } = await tell(stage.url + HUGE, { store: false });
    expect([code, message]).toEqual([
      "out-of-memory",
      expect.stringMatching(
        /huge.* weights need [45]\.\d\d GB, .* at most 4\.29 GB are available; take a smaller/,
      ),
    ]);
    expect(stage.models.sent).toBe(header.length);
    expect((await tell()).text).toBe(stage.texts.large);
  });
});

/** Models on the built page: listed, looked up, downloaded, paused, continued, deleted, chosen, remembered, explored. */

import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { startFaultyServer } from "../../npm/test-support/faulty-server.js";
import { modelFiles, modelFolder } from "./model-folder.mjs";
import { context, PATIENCE, page, server, textOf, useStage } from "./stage.mjs";

const WEIGHTS = "/tiny/model.safetensors";

/** @type {import("../../npm/test-support/faulty-server.js").FaultyServer} */
let models;

useStage({ view: "models", ready: ".model" });
beforeEach(async () => {
  models = await startFaultyServer({ cors: { exposes: true, allows: "range" } });
  for (const [name, bytes] of Object.entries(modelFiles())) models.put(`/tiny/${name}`, bytes);
});
afterEach(() => models.stop());

/** @param {string} state */
const explored = (state) => page.waitForSelector(`#explorer-status[data-state="${state}"]`, PATIENCE);

/** The card of the model on the server. */
const card = () => page.locator(".model", { hasText: "/tiny/" });

/** Looks the model up. */
async function lookUp() {
  await page.fill("#model-source", models.at("/tiny/"));
  await page.press("#model-source", "Enter");
  await card().waitFor(PATIENCE);
}

/** @param {string} state */
const status = (state) => page.waitForSelector(`#models-status[data-state="${state}"]`, PATIENCE);

/** Presses a button of the card. @param {RegExp} name */
const press = (name) => card().getByRole("button", { name }).click();

/** A model of the catalog whose repository the server has, under the Hub's address. */
const LISTED = {
  name: "falcon-e-1b",
  title: "Falcon-E 1B Instruct",
  repository: "tiiuae/Falcon-E-1B-Instruct",
};

/** Answers for the Hub. Requests for weights wait for `weights`. @param {Promise<void>} [weights] */
async function playHub(weights) {
  models.putHub(LISTED.repository, modelFiles());
  await context.route("https://huggingface.co/**", async (route) => {
    const { pathname, search } = new URL(route.request().url());
    if (pathname.endsWith(".safetensors")) await weights;
    // A request that was aborted meanwhile needs no answer.
    await route
      .fetch({ url: models.at(pathname + search) })
      .then((response) => route.fulfill({ response }))
      .catch(() => undefined);
  });
}

/** The card of a model of the catalog. @param {string} title */
const listed = (title) => page.locator(".model", { has: page.locator(`h4:text-is("${title}")`) });

describe("the list of models", () => {
  it("has the built-in model and the catalog, with sizes, and says what cannot run here, without a request", async () => {
    const requests = /** @type {string[]} */ ([]);
    page.on("request", (request) => requests.push(request.url()));
    await page.reload();
    await page.waitForSelector(".model >> nth=20", PATIENCE);
    // The fragment names the view, not a part of it that is scrolled to.
    assert.equal(await page.evaluate(() => window.scrollY), 0);
    assert.equal(await textOf(".model h4"), "Story model, built in");
    const facts = (await listed("BitNet b1.58 2B4T").textContent()) ?? "";
    assert.match(
      facts,
      /2\.4 billion parameters · Download of 1\.2 GB · Needs 2\.2 GB of memory · Context of 4096 tokens · Chats · Licence mit/,
    );
    assert.match(facts, /Runs here: CPU with/);
    const large = listed("Falcon3 10B Instruct 1.58bit");
    assert.equal(await large.getAttribute("data-fits"), "no");
    assert.match(
      (await large.textContent()) ?? "",
      /Cannot run here: it needs 5\.3 GB, WebAssembly has at most 4\.3 GB/,
    );
    assert.equal(await large.getByRole("button", { name: /^Download/ }).count(), 0);
    assert.deepEqual(
      requests.filter((url) => !url.startsWith(server.url)),
      [],
    );
  });

  it("is grouped by family, what runs here first, and recommends one", async () => {
    const groups = await page.locator(".family").evaluateAll((all) =>
      all.map((one) => ({
        title: one.querySelector("h3")?.textContent ?? "",
        fits: [...one.querySelectorAll(".model")].map((card) => card.getAttribute("data-fits") === "yes"),
      })),
    );
    assert.deepEqual(
      groups.slice(0, 2).map(({ title }) => title),
      ["On this device", "Ternary Bonsai"],
    );
    assert.equal(new Set(groups.map(({ title }) => title)).size, groups.length);
    for (const { title, fits } of groups)
      assert.deepEqual(
        fits,
        fits.toSorted((one, other) => Number(other) - Number(one)),
        title,
      );
    const best = page.locator(".model", { has: page.locator(".badge:visible") });
    assert.deepEqual(await best.locator("h4").allTextContents(), ["Ternary Bonsai 1.7B"]);
    assert.equal(await best.getAttribute("data-fits"), "yes");
  });

  it("after a failed download has the model that was loaded, and says what to do", async () => {
    await page.getByRole("button", { name: /^Use: Story model/ }).click();
    await page.waitForSelector('.model[data-state="loaded"]', PATIENCE);
    await context.route("https://huggingface.co/**", (route) => route.abort());
    await listed(LISTED.title)
      .getByRole("button", { name: /^Download and use/ })
      .click();
    await status("failed");
    await page.waitForSelector('.model[data-state="loaded"]', PATIENCE);
    assert.match(
      await textOf("#models-status"),
      /^Check the connection and press the button again: .*\(network\)$/,
    );
    assert.equal(await textOf('.model[data-state="loaded"] h4'), "Story model, built in");
    assert.equal(await textOf("#model-name"), "Story model, built in");
    assert.equal(await page.inputValue("#address"), "");
    await page.click('nav a[href="#story"]');
    await page.fill("#max-tokens", "4");
    await page.click("#run");
    await page.waitForSelector('#status[data-state="done"]', PATIENCE);
  });

  it("is searched, and filtered by what runs here", async () => {
    await page.fill("#model-filter", "falcon3 instruct");
    await page.waitForSelector('#models-count:text-matches("^4 of ")', PATIENCE);
    await page.press("#model-filter", "Enter");
    await page.check("#models-fitting");
    await page.waitForSelector('#models-count:text-matches("^2 of ")', PATIENCE);
    assert.deepEqual(await page.locator(".model h4").allTextContents(), [
      "Falcon3 1B Instruct 1.58bit",
      "Falcon3 3B Instruct 1.58bit",
    ]);
    assert.equal(await textOf("#models-status"), "");
  });

  it("downloads a model of the catalog, which is paused, continued, used and deleted", async () => {
    let release = () => {};
    await playHub(
      new Promise((resolve) => {
        release = () => resolve(undefined);
      }),
    );
    const model = listed(LISTED.title);
    const button = (/** @type {RegExp} */ name) => model.getByRole("button", { name });
    await button(/^Download and use/).click();
    await model.locator(".progress-words:not(:empty)").waitFor(PATIENCE);
    await button(/^Pause/).click();
    await page.waitForSelector('#models-status:text-matches("^Paused")', PATIENCE);
    release();
    await button(/^(Continue the download|Download and use)/).click();
    await page.waitForSelector('.model[data-state="loaded"]', PATIENCE);
    assert.match(
      (await model.textContent()) ?? "",
      /Licence falcon-llm-license · Stored here, \d\.\d MB.*In use/,
    );
    assert.equal(await page.inputValue("#address"), LISTED.name);
    assert.equal(await textOf("#model-name"), LISTED.title);
    await page.reload();
    await button(/^Use/).waitFor(PATIENCE);
    page.once("dialog", (dialog) => void dialog.accept());
    await button(/^Delete/).click();
    await page.waitForSelector('#models-status:text-matches("is deleted")', PATIENCE);
    await button(/^Download and use/).waitFor(PATIENCE);
  });

  it("tells size and memory of the built-in model", async () => {
    await page.getByRole("button", { name: /^Size and memory: Story model/ }).click();
    await status("done");
    const builtIn = page.locator(".model").first();
    await builtIn.filter({ hasText: /Needs \d+\.\d MB of memory · Context of \d+ tokens/ }).waitFor(PATIENCE);
    await builtIn.filter({ hasText: /Runs here: CPU with threads, CPU without threads/ }).waitFor(PATIENCE);
  });

  it("looks up a model by its URL, or says what is wrong", async () => {
    await lookUp();
    assert.match(
      (await card().locator(".facts").textContent()) ?? "",
      /^Download of \d\.\d MB · Needs \d+\.\d MB of memory/,
    );
    await page.fill("#model-source", models.at("/nothing/"));
    await page.press("#model-source", "Enter");
    await status("failed");
    assert.match((await page.textContent("#models-status")) ?? "", /\(not-found\)$/);
  });

  it("downloads, keeps, remembers and deletes a model", async () => {
    await lookUp();
    await press(/^Download and use/);
    await page.waitForSelector('.model[data-state="loaded"]', PATIENCE);
    assert.match((await page.textContent("#models-status")) ?? "", /is loaded: cpu, simd128\.$/);
    assert.match((await card().textContent()) ?? "", /Stored here, \d\.\d MB.*In use/);
    models.takeRequests();
    await page.reload();
    await card().waitFor(PATIENCE);
    assert.equal(await page.inputValue("#address"), models.at("/tiny/"));
    await page.click('nav a[href="#explorer"]');
    await page.click("#explorer-current");
    await explored("done");
    assert.match(
      await textOf("#explorer-facts"),
      /^model\.safetensors · safetensors · 110 tensors · 5\.8 million parameters/,
    );
    await page.click('nav a[href="#models"]');
    await press(/^Use/);
    await page.waitForSelector('.model[data-state="loaded"]', PATIENCE);
    assert.equal(models.starts(WEIGHTS).length, 0);
    page.once("dialog", (dialog) => void dialog.accept());
    await press(/^Delete/);
    await page.waitForSelector('#models-status:text-matches("is deleted")', PATIENCE);
    await card()
      .filter({ hasNotText: /Stored/ })
      .waitFor(PATIENCE);
  });

  it("pauses a download, keeps its bytes, and continues after a reload", async () => {
    models.rule(WEIGHTS, 4, { stall: 400_000 });
    await lookUp();
    await press(/^Download and use/);
    // The other files have 0.3 MB; their bytes are sent again.
    await page.waitForSelector('.progress-words:text-matches("Downloading · (0\\\\.[4-9]|[1-9])")', PATIENCE);
    await press(/^Pause/);
    await page.waitForSelector('#models-status:text-matches("^Paused")', PATIENCE);
    await card()
      .filter({ hasText: /Partly stored, [\d.]+ [kM]B/ })
      .waitFor(PATIENCE);
    models.clearRules();
    models.takeRequests();
    await page.reload();
    await card().waitFor(PATIENCE);
    await press(/^Continue the download/);
    await page.waitForSelector('.model[data-state="loaded"]', PATIENCE);
    const whole = modelFiles()["model.safetensors"]?.length ?? 0;
    const again = models.requests
      .filter(({ path }) => path === WEIGHTS)
      .reduce((sum, { sent = 0 }) => sum + sent, 0);
    assert.ok(again < whole, `${again} of ${whole} bytes were sent again`);
    assert.ok(models.starts(WEIGHTS).some((start) => start !== undefined && start > 0));
  });

  it("takes a chosen folder, and the chat and the story use it", async () => {
    const folder = await modelFolder();
    await page.setInputFiles("#folder", folder.path);
    const name = folder.path.split("/").at(-1) ?? "";
    await page.locator(".model", { hasText: name }).getByRole("button", { name: /^Use/ }).click();
    await page.waitForSelector('.model[data-state="loaded"]', PATIENCE);
    await folder.remove();
    assert.equal(await page.textContent("#model-name"), name);
    await page.click('nav a[href="#chat"]');
    await page.fill("#max-tokens", "8");
    await page.fill("#message", "Once");
    await page.keyboard.press("Enter");
    await page.waitForSelector("article .note:not(:empty)", PATIENCE);
    assert.equal(await page.locator("article .speaker").nth(1).textContent(), name);
  });
});

describe("the explorer", () => {
  it("takes what is dropped, counts its weights, and leaves the model as it is", async () => {
    await page.click('nav a[href="#explorer"]');
    const bytes = modelFiles()["model.safetensors"];
    const data = await page.evaluateHandle(
      ([text]) => {
        const dropped = new DataTransfer();
        const content = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
        dropped.items.add(new File([content], "mine.safetensors"));
        return dropped;
      },
      [Buffer.from(bytes).toString("base64")],
    );
    await page.dispatchEvent("#explorer-status", "drop", { dataTransfer: data });
    await explored("done");
    assert.match(
      await textOf("#explorer-status"),
      /^42 ternary matrices, .* read\. −1: \d+\.\d % · 0: \d+\.\d % · \+1: /,
    );
    assert.match(await textOf("#explorer-warnings"), /config\.json is missing.*tokenizer\.json is missing/);
    assert.equal(await page.locator("#explorer-rows tr").count(), 110);
    const row = await textOf('#explorer-rows tr:has(th:text-is("model.layers.0.mlp.up_proj.weight"))');
    assert.match(row, /U8768 × 256 \(packed 192 × 256\)49\.2 kB−1: \d/);
    assert.equal(await textOf("#model-name"), "Story model, built in");
  });

  it("is stopped, and says what it cannot read", async () => {
    await page.click('nav a[href="#explorer"]');
    await page.evaluate(() => {
      const read = Blob.prototype.arrayBuffer;
      const gate = new Promise((resolve) => Object.assign(window, { release: resolve }));
      Blob.prototype.arrayBuffer = async function () {
        const bytes = await read.call(this);
        if (document.querySelector("#explorer-status")?.textContent?.startsWith("Counting")) await gate;
        return bytes;
      };
    });
    await page.click("#explorer-current");
    await page.waitForSelector('#explorer-status:text-matches("^Counting")', PATIENCE);
    await page.click("#explorer-stop");
    await page.evaluate(() => /** @type {any} */ (window).release());
    await explored("idle");
    assert.match(await textOf("#explorer-status"), /^Stopped/);
    await page.setInputFiles("#explorer-files", { name: "a.gguf", mimeType: "", buffer: Buffer.from("no") });
    await explored("failed");
    assert.match(await textOf("#explorer-status"), /^a\.gguf: .* \(truncated\)$/);
    assert.equal(await page.isVisible("#explorer-table"), false);
  });
});

/** The first visit to the built page: a story that writes itself, the invitation to chat, the glossary. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { findings } from "./findings.mjs";
import { startPreview } from "./preview.mjs";
import { playHub } from "./recommended.mjs";
import {
  answered,
  context,
  ENDLESS,
  openEmptyPage,
  PATIENCE,
  PHONE,
  page,
  server,
  textOf,
  useBrowser,
  useEmptyPages,
  written,
} from "./stage.mjs";

useBrowser({ isFirstVisit: true });
useEmptyPages();

/** Opens the page on which nothing writes itself, once it has decided so. */
async function openQuietly() {
  await page.addInitScript(() =>
    Object.defineProperty(navigator, "connection", { value: { saveData: true } }),
  );
  await page.goto(server.url);
  await page.waitForSelector("#invitation:visible", PATIENCE);
}

describe("a story on the first visit", () => {
  it("writes itself, once, and its figures come with it", async () => {
    await page.goto(server.url);
    assert.equal(await page.isVisible("#pace"), false);
    assert.equal(await page.isVisible("#engine-figures"), false);
    await written();
    assert.ok((await textOf("#text")).length > 20);
    const names = await page.locator("#pace dt:visible").allTextContents();
    assert.equal(new Set(names).size, names.length);
    assert.equal((await page.locator("#pace dd").allTextContents()).includes("–"), false);
    await page.reload();
    await page.waitForSelector("#invitation:visible", PATIENCE);
    assert.equal(await textOf("#text"), "");
    assert.equal(await page.getAttribute("#status", "data-state"), "idle");
  });

  it("waits until its view is opened", async () => {
    await page.goto(`${server.url}#models`);
    await page.waitForSelector(".model", PATIENCE);
    assert.equal(await textOf("#text"), "");
    await page.click('nav a[href="#story"]');
    await written();
    assert.ok((await textOf("#text")).length > 20);
  });

  it("stops by the keyboard", async () => {
    // Controls of a text that does not end soon, before the page's scripts run.
    await page.addInitScript((controls) => {
      document.addEventListener("readystatechange", () => {
        if (document.readyState !== "interactive") return;
        for (const [id, value] of Object.entries(controls))
          Object.assign(document.getElementById(id) ?? {}, { value });
      });
    }, ENDLESS);
    await page.goto(server.url);
    await page.waitForSelector("#text .token", PATIENCE);
    await page.keyboard.press("Escape");
    await written();
    assert.match(await textOf("#status"), /^Stopped: \d+ tokens/);
  });

  it("does not write itself where the visitor saves data", async () => {
    const requests = /** @type {string[]} */ ([]);
    context.on("request", (request) => requests.push(request.url()));
    await openQuietly();
    await page.waitForSelector('#gpu:not([data-gpu="looking"])', { state: "attached", ...PATIENCE });
    await page.evaluate(() => navigator.serviceWorker.ready);
    assert.equal(await textOf("#text"), "");
    assert.deepEqual(
      requests.filter((url) => /\.(wasm|safetensors)$/.test(url)),
      [],
    );
    await page.click("#run");
    await written();
  });

  it("is written after the page has become isolated, and stays", async () => {
    const bare = await startPreview({ SETUN_ISOLATED: "0" });
    await page.goto(bare.url);
    await written();
    assert.equal(await page.evaluate(() => crossOriginIsolated), true);
    await bare.stop();
  });
});

describe("the invitation to chat", () => {
  it("names the model, what it costs, and that it runs here", async () => {
    await openQuietly();
    assert.equal(await textOf("#chat-with"), "Chat with Ternary Bonsai 1.7B, 463 MB");
    assert.match(
      await textOf("#chat-cost"),
      /^The browser downloads 463\.3 MB once and keeps them\. .* It needs 1\.0 GB of memory while it runs\./,
    );
    assert.match(await textOf("#chat-fit"), /^Runs here: CPU with threads/);
  });

  it("tells how long it takes by the rate of the connection", async () => {
    await page.addInitScript(() =>
      Object.defineProperty(navigator, "connection", { value: { saveData: true, downlink: 4 } }),
    );
    await page.goto(server.url);
    await page.waitForSelector("#invitation:visible", PATIENCE);
    assert.match(await textOf("#chat-cost"), /that takes about 16 minutes\./);
  });

  it("tells how long it takes at most, where the browser tells no rate", async () => {
    await page.addInitScript(() => Object.defineProperty(navigator, "connection", { value: undefined }));
    await page.goto(server.url);
    await page.waitForSelector("#invitation:visible", PATIENCE);
    assert.match(await textOf("#chat-cost"), /At the measured rate, that takes at most (a|\d+) minutes?\./);
  });

  it("downloads the model and answers the question in the chat", async () => {
    const hub = await playHub(context);
    await openQuietly();
    await page.fill("#max-tokens", "8");
    await page.fill("#first-question", "What is a fox?");
    await page.press("#first-question", "Enter");
    await answered();
    assert.deepEqual(await page.locator("article .speaker").allTextContents(), [
      "You",
      "Ternary Bonsai 1.7B",
    ]);
    assert.equal(await textOf("article .body"), "What is a fox?");
    assert.equal(await textOf("#model-name"), "Ternary Bonsai 1.7B");
    await page.click('nav a[href="#story"]');
    assert.equal(await textOf("#text"), "");
    // What another model wrote before is not this one's.
    await page.click('nav a[href="#models"]');
    await page.getByRole("button", { name: /^Use: Story model/ }).click();
    await page.waitForSelector('#models-status[data-state="done"]', PATIENCE);
    await page.click('nav a[href="#chat"]');
    assert.equal(await page.locator("article .speaker").last().textContent(), "Ternary Bonsai 1.7B");
    await hub.stop();
  });

  it("is in the chat, too, and keeps what is written there", async () => {
    const hub = await playHub(context);
    await openQuietly();
    await page.click('nav a[href="#chat"]');
    await page.fill("#message", "What is a fox?");
    await page.click("#chat-here");
    await page.waitForSelector('#chat-status:has-text("Ternary Bonsai 1.7B is ready.")', PATIENCE);
    assert.equal(await page.inputValue("#message"), "What is a fox?");
    await hub.stop();
  });

  it("without a question makes the model ready, also during a story", async () => {
    const hub = await playHub(context);
    await page.goto(server.url);
    await page.click("#chat-with");
    await page.waitForSelector('#chat-status:has-text("Ternary Bonsai 1.7B is ready.")', PATIENCE);
    assert.equal(await page.evaluate(() => document.activeElement?.id), "message");
    await hub.stop();
  });

  it("says what failed, and tries again", async () => {
    await context.route("https://huggingface.co/**", (route) => route.abort());
    await openQuietly();
    await page.click("#chat-with");
    await page.waitForSelector('#chat-status[data-state="failed"] button', PATIENCE);
    assert.match(
      await textOf("#chat-status"),
      /^Check the connection .* Ternary Bonsai 1\.7B was not loaded: .*\(network\) Try again$/,
    );
    await context.unrouteAll();
    const hub = await playHub(context);
    await page.click('#chat-status >> text="Try again"');
    await page.waitForSelector('#chat-status:has-text("is ready.")', PATIENCE);
    await hub.stop();
  });
});

describe("the glossary", () => {
  it("explains a term by pointer, and by keyboard", async () => {
    await openQuietly();
    const term = page.getByRole("button", { name: "What log-probabilities are" });
    await term.hover();
    await page.waitForSelector("#term-logprobs:visible");
    await page.hover("h1");
    await page.waitForSelector("#term-logprobs", { state: "hidden" });
    await term.focus();
    await page.keyboard.press("Enter");
    await page.waitForSelector("#term-logprobs:visible");
    assert.equal(await findings(page), "");
    await page.keyboard.press("Escape");
    await page.waitForSelector("#term-logprobs", { state: "hidden" });
    assert.equal(
      await page.evaluate(() => document.activeElement?.getAttribute("aria-describedby")),
      "term-logprobs",
    );
  });

  it("has every term that a view shows", async () => {
    await openQuietly();
    await page.click("#engine summary");
    const ids = await page
      .locator(".term")
      .evaluateAll((terms) => terms.map((term) => term.getAttribute("aria-describedby") ?? ""));
    for (const id of ["term-logprobs", "term-fork", "term-prefilter", "term-parity", "term-speculative"])
      assert.ok(ids.includes(id), id);
    for (const id of ids) assert.ok((await textOf(`#${id}`)).trim().length > 40, id);
  });

  it("explains by touch on a narrow screen, with targets of 44 pixels", async () => {
    await context.close();
    await openEmptyPage(PHONE);
    await openQuietly();
    await page.click("#engine summary");
    for (const term of await page.locator(".term:visible").all()) {
      const { width = 0, height = 0 } = (await term.boundingBox()) ?? {};
      assert.ok(width >= 44 && height >= 44, `${await term.textContent()}: ${width} × ${height}`);
      await term.tap();
      const id = await term.getAttribute("aria-describedby");
      await page.waitForSelector(`#${id}:visible`);
      const box = await page.locator(`#${id}`).boundingBox();
      assert.ok(box && box.x >= 0 && box.x + box.width <= 360, JSON.stringify(box));
      await page.touchscreen.tap(350, 5);
      await page.waitForSelector(`#${id}`, { state: "hidden" });
    }
  });
});

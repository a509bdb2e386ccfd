/** Conversations on the built page, in a browser. */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, it } from "node:test";
import { modelFolder } from "./model-folder.mjs";
import {
  context,
  ENDLESS,
  openPage,
  PATIENCE,
  page,
  server,
  setControls,
  textOf,
  useStage,
} from "./stage.mjs";

const CHAT = {
  ...{ view: "chat", ready: "#messages > *" },
  controls: { "max-tokens": "16", seed: "3" },
};

useStage(CHAT);

/** Sends a message and waits for the answer. @param {string} text */
async function send(text) {
  const count = await page.locator("article").count();
  await page.fill("#message", text);
  await page.keyboard.press("Enter");
  await page.waitForFunction(
    (least) => document.querySelectorAll("article").length >= least,
    count + 2,
    PATIENCE,
  );
  await idle();
}

async function idle() {
  await page.waitForSelector("#send:enabled", PATIENCE);
  await page.waitForSelector("article:not([data-busy])", PATIENCE);
  assert.notEqual(
    await page.getAttribute("#chat-status", "data-state"),
    "failed",
    await textOf("#chat-status"),
  );
}

/** The texts of all messages. */
const bodies = () => page.locator("article .body").allInnerTexts();

/** @param {number} at @param {string} name */
const press = (at, name) =>
  page.locator("article").nth(at).getByRole("button", { name, exact: true }).click();

/** What the story view says after a prompt. @param {string} prompt */
async function storyAfter(prompt) {
  await page.click('nav a[href="#story"]');
  await page.waitForSelector('[data-view="story"]:visible');
  if (await page.isVisible("#chat-choice")) await page.check("#use-template");
  await page.fill("#prompt", prompt);
  await page.click("#run");
  await page.waitForSelector("#run:enabled", PATIENCE);
  const text = await textOf("#text");
  await page.click('nav a[href="#chat"]');
  return text;
}

/** Imports conversations with these messages, one after another. @param {[role: string, content: string][]} messages */
async function importMessages(messages) {
  const made = messages.map(([role, content], at) => ({
    ...{ id: String(at), parent: at === 0 ? null : String(at - 1), role, content },
  }));
  const thread = { id: "a", title: "Imported", system: "", format: "auto", updated: 1 };
  const threads = [{ ...thread, leaf: String(messages.length - 1), messages: made }];
  const buffer = Buffer.from(JSON.stringify({ kind: "setun-conversations", version: 1, threads }));
  await page.setInputFiles("#import", { name: "file.json", mimeType: "application/json", buffer });
  await page.waitForSelector('#chat-status:text-matches("^Imported 1")', PATIENCE);
  await page.locator("#thread-list button").first().click();
  await page.waitForFunction(
    (count) => document.querySelectorAll("article").length === count,
    messages.length,
  );
}

describe("the chat with a model without a chat template", () => {
  it("says so, and continues what is written, as a story with the same seed", async () => {
    assert.match(await textOf("#chat-notice"), /no chat template: it continues texts/);
    assert.equal(await page.isVisible("#system-prompt"), false);
    await send("Once upon a time, a fox");
    const [, answer = ""] = await bodies();
    assert.equal(
      (await storyAfter("Once upon a time, a fox")).trim().replace(/\s+/g, " "),
      answer.replace(/\s+/g, " "),
    );
    assert.match(await textOf("article .note >> nth=1"), /^Length limit reached · 16 tokens · .* · seed 3$/);
    await page.locator("article").evaluateAll((all) => {
      for (const article of all) Object.assign(article, { isFirst: true });
    });
    await send("Then it slept.");
    assert.equal((await bodies()).length, 4);
    // What was there is not made anew.
    const areSame = await page.locator("article").evaluateAll((all) => all.map((one) => "isFirst" in one));
    assert.deepEqual(areSame, [true, true, false, false]);
  });

  it("has its field at the bottom of the window, above every message", async () => {
    for (const [width, height] of /** @type {const} */ ([
      [1100, 900],
      [360, 740],
    ])) {
      await page.setViewportSize({ width, height });
      if (width === 1100) await send("Once upon a time");
      await page.locator("#messages").evaluate((log) => log.scrollIntoView({ block: "end" }));
      const box = (await page.locator(".composer").boundingBox()) ?? { y: 0, height: 0 };
      assert.ok(
        Math.abs(box.y + box.height - height) < 40,
        `${width}: ends at ${box.y + box.height} of ${height}`,
      );
    }
  });

  it("takes a beginning that is offered", async () => {
    const offered = await textOf(".beginnings button");
    await page.click(".beginnings button");
    await page.waitForFunction(() => document.querySelectorAll("article").length === 2, null, PATIENCE);
    await idle();
    assert.equal((await bodies())[0], offered);
    const title = await page.inputValue("#thread-title");
    assert.ok(title.length > 10 && offered.startsWith(title.replace(/…$/, "")), title);
  });

  it("stops by the keyboard and keeps what is there", async () => {
    await setControls(page, ENDLESS);
    await page.fill("#message", "Once upon a time");
    await page.keyboard.press("Enter");
    await page.waitForFunction(
      () => (document.querySelector("article[data-busy] .body")?.textContent ?? "").length > 20,
      null,
      PATIENCE,
    );
    await page.keyboard.press("Escape");
    await idle();
    assert.match(await textOf("article .note >> nth=1"), /^Stopped · \d+ tokens/);
    assert.ok(((await bodies())[1] ?? "").length > 20);
  });
});

describe("messages", () => {
  it("are answered again, edited, and every version stays", async () => {
    await send("The old king");
    const [, first] = await bodies();
    await press(1, "Retry");
    await page.waitForSelector('.versions:has-text("2 of 2")', PATIENCE);
    await idle();
    const [, second] = await bodies();
    assert.notEqual(second, first);
    await press(0, "Edit");
    await page.fill(".editor textarea", "The young queen");
    await page.click(".editor .primary");
    await page.waitForSelector('article >> nth=0 >> text="2 of 2"', PATIENCE);
    await idle();
    assert.equal((await bodies())[0], "The young queen");
    await press(0, "Previous version");
    assert.deepEqual(await bodies(), ["The old king", second]);
    await press(1, "Previous version");
    assert.deepEqual(await bodies(), ["The old king", first]);
  });

  it("keep what is being written while the model answers", async () => {
    await send("The old king");
    await press(0, "Edit");
    await page.fill(".editor textarea", "The young queen");
    await page.fill("#max-tokens", ENDLESS["max-tokens"]);
    await page.fill("#temperature", ENDLESS.temperature);
    await page.fill("#message", "And then");
    // In the task that begins the answer: on a slow machine it is over before a click from here arrives.
    const said = page.evaluate(
      ({ timeout }) =>
        new Promise((resolve) => {
          const click = (/** @type {string} */ name) =>
            /** @type {HTMLElement} */ (document.querySelector(name)).click();
          const observer = new MutationObserver(() => {
            if (document.querySelector("article[data-busy]") === null) return;
            observer.disconnect();
            click(".editor .primary");
            resolve(document.querySelector("#chat-status")?.textContent);
            click("#chat-stop");
          });
          observer.observe(document.body, { attributes: true, childList: true, subtree: true });
          setTimeout(resolve, timeout, "no answer began");
        }),
      PATIENCE,
    );
    await page.keyboard.press("Enter");
    assert.match(String(await said), /^Your changes are kept/);
    await idle();
    assert.equal(await page.inputValue(".editor textarea"), "The young queen");
    await page.fill("#max-tokens", "16");
    await page.click(".editor .primary");
    await page.waitForSelector('article >> nth=0 >> text="2 of 2"', PATIENCE);
    await idle();
    assert.equal((await bodies())[0], "The young queen");
  });

  it("of the model are edited without an answer", async () => {
    await send("The old king");
    await press(1, "Edit");
    await page.fill(".editor textarea", "laughed.");
    await page.click(".editor .primary");
    assert.deepEqual(await bodies(), ["The old king", "laughed."]);
    assert.equal(await textOf(".versions span"), "2 of 2");
  });

  it("fork into a conversation of their own", async () => {
    await send("The old king");
    const before = await bodies();
    await send("And then");
    await press(1, "Fork");
    await page.waitForFunction(
      () => document.querySelectorAll("#thread-list li").length === 2,
      null,
      PATIENCE,
    );
    assert.deepEqual(await bodies(), before);
    await send("But no");
    await page.locator("#thread-list button:not([aria-current])").click();
    await page.waitForSelector('article:has-text("And then")');
    assert.equal((await bodies()).length, 4);
  });
});

describe("conversations", () => {
  it("are there after a reload, in another tab at once, and after a deletion that is undone", async () => {
    await send("The old king");
    const before = await bodies();
    await page.fill("#thread-title", "A king");
    await page.press("#thread-title", "Tab");
    await page.waitForSelector('#thread-list button:text-is("A king")');
    const other = await openPage(CHAT);
    await other.waitForSelector('#thread-list button:text-is("A king")', PATIENCE);
    await page.reload();
    await page.waitForSelector("article", PATIENCE);
    assert.deepEqual(await bodies(), before);
    await page.click("#delete-thread");
    await page.waitForSelector('#chat-status:has-text("Deleted “A king”")', PATIENCE);
    await other.waitForSelector("#thread-list:empty", { state: "attached", ...PATIENCE });
    await page.click('#chat-status >> text="Undo"');
    await other.waitForSelector('#thread-list button:text-is("A king")', PATIENCE);
    assert.deepEqual(await bodies(), before);
  });

  it("are exported and imported; a damaged file is refused and changes nothing", async () => {
    await send("The old king");
    const before = await bodies();
    const [download] = await Promise.all([page.waitForEvent("download"), page.click("#export")]);
    const path = await download.path();
    await page.click("#delete-thread");
    await page.waitForSelector("#thread-list:empty", { state: "attached", ...PATIENCE });
    await page.setInputFiles("#import", path);
    await page.waitForSelector("#thread-list button", PATIENCE);
    await page.locator("#thread-list button").click();
    await page.waitForSelector("article");
    assert.deepEqual(await bodies(), before);
    const text = (await readFile(path, "utf8")).replace('"role": "user"', '"role": "king"');
    const damaged = { name: "bad.json", mimeType: "application/json", buffer: Buffer.from(text) };
    await page.setInputFiles("#import", damaged);
    await page.waitForSelector('#chat-status[data-state="failed"]');
    assert.match(
      await textOf("#chat-status"),
      /^bad\.json: threads\[0\]\.messages\[0\]\.role: expected "user"/,
    );
    assert.equal(await page.locator("#thread-list li").count(), 1);
  });
});

describe("the chat with a model that has a chat template", () => {
  it("uses it, with the system prompt first", async () => {
    const template = "{% for m in messages %}{{ m.content }}{% endfor %}";
    const folder = await modelFolder({ "chat_template.jinja": template });
    await page.setInputFiles("#folder", folder.path);
    await page.click("#system-prompt summary");
    await page.fill("#system", "Once upon a time, ");
    await send("a little dog");
    await folder.remove();
    assert.equal(await page.isVisible("#chat-notice"), false);
    const [, answer = ""] = await bodies();
    // There the one message goes through the same template.
    const story = await storyAfter("Once upon a time, a little dog");
    assert.equal(answer.replace(/\s+/g, " "), story.trim().replace(/\s+/g, " "));
    await page.selectOption("#chat-format", "transcript");
    await send("Hello");
    assert.match(await textOf("article .note >> nth=3"), /tokens/);
  });
});

describe("the chat with a model that thinks", () => {
  it("folds the reasoning, and gives it back to the template", async () => {
    const template =
      "{% for m in messages %}{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}" +
      "{{ m.content }}{% endfor %}{% if add_generation_prompt %}<think>{% endif %}";
    const folder = await modelFolder({ "chat_template.jinja": template });
    await page.setInputFiles("#folder", folder.path);
    await send("Once upon a time, a little dog");
    await folder.remove();
    const reasoning = page.locator("article details.reasoning").last();
    assert.equal(await reasoning.isVisible(), true);
    assert.match((await reasoning.locator("summary").textContent()) ?? "", /^Thought for [1-9]\d* seconds?$/);
    assert.equal(await reasoning.locator("div").isVisible(), false, "it is folded");
    await reasoning.locator("summary").click();
    assert.notEqual((await reasoning.locator(".thoughts:not(:empty)").textContent())?.trim(), "");
    assert.equal(
      (await page.locator("article .body").last().textContent())?.trim(),
      "",
      "it thought to the end",
    );
  });
});

describe("Markdown", () => {
  it("is shown as headings, lists, tables and code that can be copied", async () => {
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    const code = "let a = `<b>`;\n// & more\n";
    const text = `# Top\n\n- one\n- **two**\n\n3. three\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n\`\`\`js\n${code}\`\`\`\n\n[x](https://example.org/)`;
    await importMessages([
      ["user", "# not *Markdown*"],
      ["assistant", text],
    ]);
    const [mine, answer] = [page.locator("article .body").nth(0), page.locator("article .body").nth(1)];
    assert.equal(await mine.textContent(), "# not *Markdown*");
    assert.equal(await answer.locator("h4").textContent(), "Top");
    assert.deepEqual(await answer.locator("li").allInnerTexts(), ["one", "two", "three"]);
    assert.equal(await answer.locator("ol").getAttribute("start"), "3");
    assert.equal(await answer.locator("td").count(), 2);
    assert.equal(await answer.locator("a").getAttribute("rel"), "noopener noreferrer nofollow");
    assert.equal(await answer.locator(".code-head span").textContent(), "js");
    await answer.getByRole("button", { name: "Copy code" }).click();
    await answer.locator('button:text-is("Copied")').waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), code.trimEnd());
  });

  it("of a hostile text runs nothing, loads nothing and leaves the page alone", async () => {
    const address = "https://attacker.invalid/x";
    const hostile = [
      "<script>window.hacked = 1</script>",
      "<img src=x onerror='window.hacked = 1'>",
      `<iframe src="${address}"></iframe><object data="${address}"></object><embed src="${address}">`,
      "<svg onload='window.hacked = 1'><style>@import url(https://attacker.invalid/s)</style></svg>",
      "<form id=form action=https://attacker.invalid/><input name=message></form>",
      '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=window.hacked=1&gt;">',
      "<a id=messages name=form href='javascript:window.hacked=1'>a</a>",
      "[b](javascript:window.hacked=1) [c](JaVaScRiPt&colon;window.hacked=1) [d](data:text/html,<script>1</script>)",
      "[e](vbscript:x) [f](\u0001javascript:window.hacked=1) <javascript:window.hacked=1>",
      `![pixel](${address}.png) ![g](javascript:window.hacked=1)`,
      '[h](https://example.org/"onmouseover="window.hacked=1) `<script>window.hacked=1</script>`',
      '```"><img/src=x/onerror=window.hacked=1>\n</code></pre><script>window.hacked=1</script>\n```',
      "<base href='https://attacker.invalid/'><meta http-equiv=refresh content='0;url=https://attacker.invalid/'>",
      "<style>body{display:none}</style><div style='position:fixed;inset:0'>over</div>",
      `${"> ".repeat(5000)}deep`,
      `${"[".repeat(3000)}x${"](".repeat(3000)}`,
    ];
    /** @type {string[]} */
    const requests = [];
    page.on("request", (request) => requests.push(request.url()));
    page.on("dialog", () => requests.push("dialog"));
    await importMessages(hostile.map((text) => ["assistant", text]));
    const log = page.locator("#messages");
    assert.equal(await log.locator("article").count(), hostile.length);
    for (const link of await log.locator("a").all()) await link.dispatchEvent("mouseover");
    assert.equal(await page.evaluate(() => "hacked" in window), false);
    assert.deepEqual(
      requests.filter((url) => !url.startsWith(server.url)),
      [],
    );
    const found = await log.evaluate((all) => {
      const elements = [...all.querySelectorAll(".body *")];
      const names = new Set(elements.map(({ tagName }) => tagName.toLowerCase()));
      const attributes = new Set(elements.flatMap((one) => one.getAttributeNames()));
      const links = [...all.querySelectorAll("a[href]")].map((link) => link.getAttribute("href") ?? "");
      return { names: [...names], attributes: [...attributes], links };
    });
    const harmless = "a blockquote br button code div em li ol p pre span strong ul".split(" ");
    assert.deepEqual(
      found.names.filter((name) => !harmless.includes(name)),
      [],
    );
    const plain = ["href", "target", "rel", "title", "class", "type", "data-language", "tabindex"];
    assert.deepEqual(
      found.attributes.filter((name) => !plain.includes(name)),
      [],
    );
    assert.ok(
      found.links.length >= 2 && found.links.every((href) => /^(https?|mailto):/.test(href)),
      found.links.join(),
    );
    // What it says is still there to read.
    assert.match((await log.textContent()) ?? "", /<script>window\.hacked = 1<\/script>/);
    assert.equal(await page.isVisible("#send"), true);
  });
});

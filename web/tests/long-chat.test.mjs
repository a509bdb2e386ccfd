/** A long conversation in a browser: what a token of an answer costs does not grow with the messages before it. */

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { launch } from "../browser.mjs";
import { bundled } from "./bundled.mjs";
import { drawMarkdown } from "./drawn-markdown.mjs";

/** Most nodes that a piece may add, remove or change. */
const MAX_CHANGES = 40;

/** @type {import("playwright-core").Browser} */
let browser;
/** @type {import("playwright-core").Page} */
let page;

before(async () => {
  browser = await launch();
  page = await browser.newPage({ viewport: { width: 800, height: 600 } });
  await page.setContent('<main><div id="messages"></div></main>');
  await page.addScriptTag({ content: await bundled("chat/message-log.ts", "messageLog") });
});
after(() => browser.close());

/**
 * Writes an answer, piece by piece, in a conversation with questions and answers before it: for each piece the nodes that
 * change, how often the page's layout is asked for, and what changes outside the answer.
 * @param {number} turns @param {string} text
 */
const costs = (turns, text) =>
  page.evaluate(
    async ([turns, text]) => {
      const log = /** @type {HTMLElement} */ (document.querySelector("#messages"));
      log.replaceChildren();
      const nothing = () => undefined;
      const { MessageLog } = /** @type {any} */ (window).messageLog;
      const view = new MessageLog(
        { edit: nothing, retry: nothing, fork: nothing, tokensOf: nothing },
        nothing,
      );
      const messages = /** @type {any[]} */ ([]);
      const add = (/** @type {string} */ role, /** @type {string} */ content) => {
        const message = { id: String(messages.length), parent: messages.at(-1)?.id ?? null, role, content };
        messages.push(message);
        return message;
      };
      for (let turn = 0; turn < Number(turns); turn += 1) {
        add("user", `Question ${turn}`);
        add("assistant", String(text));
      }
      const question = add("user", "The last question");
      const thread = { messages, leaf: question.id };
      view.show(thread, "Model", true);
      const answer = add("assistant", "");
      const shown = view.append(thread, answer, "Model");
      shown.isBusy = true;

      let asked = 0;
      const layout = Element.prototype.getBoundingClientRect;
      Element.prototype.getBoundingClientRect = function () {
        asked += 1;
        return layout.call(this);
      };
      const observer = new MutationObserver(nothing);
      observer.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
      const found = {
        changes: /** @type {number[]} */ ([]),
        asked: /** @type {number[]} */ ([]),
        outside: 0,
      };
      for (let at = 0; at < text.length; at += 12) {
        asked = 0;
        answer.content += text.slice(at, at + 12);
        shown.update();
        // Two tokens within a frame are drawn once.
        shown.update();
        await new Promise(requestAnimationFrame);
        const records = observer.takeRecords();
        const size = (/** @type {MutationRecord} */ { addedNodes, removedNodes }) =>
          1 + addedNodes.length + removedNodes.length;
        found.changes.push(records.reduce((sum, record) => sum + size(record), 0));
        found.asked.push(asked);
        found.outside += records.filter(({ target }) => !shown.element.contains(target)).length;
      }
      Element.prototype.getBoundingClientRect = layout;
      return found;
    },
    /** @type {const} */ ([turns, text]),
  );

it("an answer after 50 turns changes what it changes after none, and nothing else", async () => {
  const text = drawMarkdown(7);
  const [first, late] = [await costs(0, text), await costs(50, text)];
  assert.equal(await page.locator("article").count(), 102);
  assert.deepEqual(late.changes, first.changes);
  assert.ok(Math.max(...late.changes) <= MAX_CHANGES, `${Math.max(...late.changes)} changes`);
  assert.deepEqual(new Set(late.asked), new Set([1]));
  assert.equal(late.outside, 0);
});

/** Markdown that is written piece by piece, in a browser: nothing flashes, nothing jumps. */

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { launch } from "../browser.mjs";
import { bundled } from "./bundled.mjs";
import { drawMarkdown } from "./drawn-markdown.mjs";

const TEXT = `# Ternary computers

A *ternary* computer has **three** digits, \`−1\`, \`0\` and \`+1\`. It was built in
Moscow, and [its page](https://example.org/setun) tells more: 2 * 3 * 4 and snake_case_name.

Here are some:
- one, with **bold words** and \`code\`
- two
  - nested
- three

1. first
2. second

> A quotation, ~~struck~~.

| name | value |
|---|---:|
| minus | −1 |
| plus | 1 |

\`\`\`js
function trit(value) {
  return value > 0 ? "+" : value < 0 ? "-" : "0"; // ${"a long line ".repeat(12)}
}
\`\`\`

## The end

It ends here.
`;

const IS_FULL = process.env.SETUN_FULL === "1";

/** Texts and pieces are drawn from here on: in a full check others each time. */
const SEED = IS_FULL ? Number(process.env.SETUN_SEED ?? 0) : 1;

/** Texts that are drawn. */
const DRAWN = IS_FULL ? 400 : 40;

/** @type {import("playwright-core").Browser} */
let browser;
/** @type {import("playwright-core").Page} */
let page;

before(async () => {
  browser = await launch();
  page = await browser.newPage({ viewport: { width: 420, height: 800 } });
  await page.setContent(
    "<style>body { font: 16px/1.5 sans-serif } pre { margin: 0; padding: 12px; overflow: auto }</style>",
  );
  await page.addScriptTag({ content: await bundled("chat/markdown-view.ts", "markdownView") });
});
after(() => browser.close());

/**
 * Shows a text in pieces whose lengths a seed decides, and says what went wrong on the way.
 * @param {string} text @param {number} seed
 */
const stream = (text, seed) =>
  page.evaluate(
    ([text, seed]) => {
      const { MarkdownView } = /** @type {any} */ (window).markdownView;
      const [view, whole] = [new MarkdownView(), new MarkdownView()];
      document.body.replaceChildren(view.element, whole.element);
      let random = Number(seed);
      const next = (/** @type {number} */ most) => {
        random = (random * 1_103_515_245 + 12_345) % 2 ** 31;
        return 1 + (random % most);
      };
      const problems = /** @type {string[]} */ ([]);
      /** @type {Element[]} */
      let kept = [];
      let height = 0;
      for (let at = 0; at < text.length; ) {
        at = Math.min(text.length, at + next(9));
        view.show(text.slice(0, at), true);
        const now = view.element.getBoundingClientRect().height;
        const end = JSON.stringify(text.slice(Math.max(0, at - 30), at));
        if (now < height) problems.push(`lower by ${height - now} after ${end}`);
        height = now;
        for (const [place, element] of kept.entries())
          if (view.element.children[place] !== element) problems.push(`block ${place} replaced after ${end}`);
        // The last two may still change their kind.
        kept = [...view.element.children].slice(0, -2);
        if (/\*\*|~~|\]\(/.test(view.element.textContent ?? ""))
          problems.push(`marks are shown after ${end}`);
      }
      view.show(text, false);
      whole.show(text, false);
      if (view.element.innerHTML !== whole.element.innerHTML) problems.push("it ends otherwise");
      return problems;
    },
    /** @type {const} */ ([text, seed]),
  );

describe("Markdown in pieces", () => {
  for (const seed of [1, 2, 3, 4, 5, 6])
    it(`never jumps, keeps finished blocks, and ends as the whole: seed ${seed}`, async () => {
      assert.deepEqual(await stream(TEXT, seed), []);
    });

  it("does the same with texts that are drawn", async () => {
    for (let seed = SEED; seed < SEED + DRAWN; seed += 1) {
      const text = drawMarkdown(seed);
      assert.deepEqual(await stream(text, seed), [], `seed ${seed}:\n${text}`);
    }
  });

  it("keeps code with its button and its scroll position while lines follow", async () => {
    const found = await page.evaluate(() => {
      const { MarkdownView } = /** @type {any} */ (window).markdownView;
      const view = new MarkdownView();
      document.body.replaceChildren(view.element);
      view.show(`\`\`\`js\n${"long ".repeat(80)}`, true);
      const [code, button] = [view.element.querySelector("pre"), view.element.querySelector("button")];
      code.scrollLeft = 40;
      view.show(`\`\`\`js\n${"long ".repeat(80)}\nmore`, true);
      const isSame =
        code === view.element.querySelector("pre") && button === view.element.querySelector("button");
      return { isSame, scroll: code.scrollLeft, text: code.textContent };
    });
    assert.deepEqual(found, { isSame: true, scroll: 40, text: `${"long ".repeat(80)}\nmore` });
  });

  it("resolves links that are defined at the end", async () => {
    const html = await page.evaluate(() => {
      const { MarkdownView } = /** @type {any} */ (window).markdownView;
      const view = new MarkdownView();
      const text = "See [the page][a].\n\nOne.\n\nTwo.\n\nThree.\n\n[a]: https://example.org/x\n";
      for (let at = 1; at <= text.length; at += 1) view.show(text.slice(0, at), true);
      view.show(text, false);
      return view.element.querySelector("a")?.getAttribute("href");
    });
    assert.equal(html, "https://example.org/x");
  });

  it("shows another text in the place of one", async () => {
    const texts = await page.evaluate(() => {
      const { MarkdownView } = /** @type {any} */ (window).markdownView;
      const view = new MarkdownView();
      const seen = [];
      for (const text of ["# a\n\nb\n\nc\n\nd", "e", "# f\n\n- g", ""]) {
        view.show(text, true);
        seen.push(view.element.textContent.replace(/\s+/g, " ").trim());
      }
      return seen;
    });
    assert.deepEqual(texts, ["a b c d", "e", "f g", ""]);
  });
});

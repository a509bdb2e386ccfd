/** Modules of the page that need no browser: conversations, results in links, comparisons, devices. */

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { importModule } from "./modules.mjs";

/** @type {any} */
let threads;
before(async () => {
  threads = await importModule("chat/thread.ts");
});

/** Contents of the path that is shown. @param {any} thread @returns {string[]} */
const shown = (thread) => threads.path(thread).map((/** @type {any} */ { content }) => content);

/** A conversation of two turns, whose first answer has two versions and whose second question has two. */
function branched() {
  const thread = threads.newThread();
  const one = threads.add(thread, null, "user", "one");
  const first = threads.add(thread, one.id, "assistant", "first");
  const two = threads.add(thread, first.id, "user", "two");
  threads.add(thread, two.id, "assistant", "second");
  const other = threads.add(thread, one.id, "assistant", "other");
  return { thread, one, first, two, other };
}

describe("a conversation", () => {
  it("shows the path to the last message, and is named by the first", () => {
    const { thread } = branched();
    assert.deepEqual(shown(thread), ["one", "other"]);
    assert.equal(thread.title, "one");
  });

  it("is named in plain text, whatever Markdown the question has", () => {
    const titles = {
      "# What is **ternary**?": "What is ternary?",
      "- *one*\n- `two` and snake_case_name": "one two and snake_case_name",
      "See [the page](https://example.org/a_b_c) and 2 * 3 * 4": "See the page and 2 * 3 * 4",
      "```js\nlet a;\n```\n> why?": "let a; why?",
      "  \n\n1. __First__ ~~second~~": "First second",
    };
    for (const [content, title] of Object.entries(titles)) {
      const thread = threads.newThread();
      threads.add(thread, null, "user", content);
      assert.equal(thread.title, title);
    }
  });

  it("keeps versions apart, and shows the newest messages after the chosen one", () => {
    const { thread, one, first, two, other } = branched();
    assert.deepEqual(threads.versions(thread, first), [first, other]);
    threads.select(thread, first);
    assert.deepEqual(shown(thread), ["one", "first", "two", "second"]);
    threads.add(thread, first.id, "user", "two, edited");
    assert.deepEqual(shown(thread), ["one", "first", "two, edited"]);
    threads.select(thread, two);
    assert.deepEqual(shown(thread), ["one", "first", "two", "second"]);
    threads.select(thread, one);
    assert.deepEqual(shown(thread), ["one", "first", "two, edited"]);
  });

  it("forks into one of its own, with the path alone", () => {
    const { thread, first } = branched();
    threads.select(thread, first);
    const fork = threads.forkAt(thread, first);
    assert.deepEqual(shown(fork), ["one", "first"]);
    assert.equal(fork.messages.length, 2);
    assert.notEqual(fork.id, thread.id);
    threads.add(fork, fork.leaf, "user", "elsewhere");
    assert.deepEqual(shown(thread), ["one", "first", "two", "second"]);
  });

  it("takes back an answer that said nothing", () => {
    const { thread, one, other } = branched();
    threads.remove(thread, other, one.id);
    threads.selectNewest(thread);
    assert.deepEqual(shown(thread), ["one", "first", "two", "second"]);
  });
});

describe("prompts", () => {
  const messages = [
    { role: "user", content: "Once upon a time" },
    { role: "assistant", content: " there was a fox." },
    { role: "user", content: "It slept." },
  ];

  it("without a template are one text, or a transcript", async () => {
    const { oneText, transcript, usedFormat } = await importModule("chat/prompt.ts");
    const text = "Once upon a time there was a fox. It slept.";
    assert.equal(oneText({ system: "", messages, begun: "" }), text);
    assert.equal(oneText({ system: "", messages, begun: " It" }), `${text} It`);
    assert.equal(
      transcript({ system: "Be kind.", messages, begun: " It" }),
      "Be kind.\n\nUser: Once upon a time\nAssistant: there was a fox.\nUser: It slept.\nAssistant: It",
    );
    assert.deepEqual(
      [usedFormat("auto", true), usedFormat("auto", false), usedFormat("template", false)],
      ["template", "together", "together"],
    );
  });
});

describe("a file of conversations", () => {
  it("comes back equal, under new ids", async () => {
    const { toJson, fromJson } = await importModule("chat/exchange.ts");
    const { thread, other } = branched();
    Object.assign(other, {
      note: "7 tokens",
      reasoning: "Hm.",
      reasoningSeconds: 2.5,
      writer: "Story model",
    });
    const [back] = fromJson(toJson([thread]));
    assert.deepEqual(shown(back), shown(thread));
    assert.deepEqual(
      back.messages.map((/** @type {any} */ { id, parent, ...rest }) => rest),
      thread.messages.map((/** @type {any} */ { id, parent, ...rest }) => rest),
    );
    const ids = new Set([...thread.messages, ...back.messages].map(({ id }) => id));
    assert.equal(ids.size, 2 * thread.messages.length);
  });

  it("is refused with the place, what was expected and what was found", async () => {
    const { toJson, fromJson } = await importModule("chat/exchange.ts");
    const whole = () => JSON.parse(toJson([branched().thread]));
    /** @type {[(file: any) => void, RegExp][]} */
    const wrongs = [
      [(file) => (file.kind = "other"), /^kind: expected "setun-conversations", found "other"$/],
      [(file) => (file.version = 2), /^version: expected 1, found 2$/],
      [(file) => (file.threads = {}), /^threads: expected a list, found \{\}$/],
      [(file) => (file.threads[0].title = 3), /^threads\[0\]\.title: expected a text, found 3$/],
      [
        (file) => (file.threads[0].messages[1].role = "system"),
        /messages\[1\]\.role: expected "user" or "assistant"/,
      ],
      [
        (file) => (file.threads[0].messages[1].parent = "x"),
        /messages\[1\]\.parent: expected the id of an earlier/,
      ],
      [
        (file) => (file.threads[0].messages[1].id = file.threads[0].messages[0].id),
        /messages\[1\]\.id: expected an id of/,
      ],
      [
        (file) => (file.threads[0].leaf = "x"),
        /^threads\[0\]\.leaf: expected the id of a message, found "x"$/,
      ],
      [(file) => delete file.threads[0].format, /format: expected "auto" .*, found nothing$/],
    ];
    for (const [spoil, message] of wrongs) {
      const file = whole();
      spoil(file);
      assert.throws(() => fromJson(JSON.stringify(file)), { message });
    }
    assert.throws(() => fromJson("{"), /^Error: The file is not JSON: /);
  });
});

describe("a result in a link", () => {
  it("comes back equal; anything else is none", async () => {
    const { toFragment, fromFragment, median } = await importModule("benchmark/result.ts");
    const result = {
      ...{ model: "Zoë 🐉", build: "relaxed", backend: "cpu", level: "relaxed", browser: "Firefox 153" },
      ...{ threads: 2, promptTokens: 128, tokens: 64, prefill: 141.5, decode: 20.25, cores: 8 },
    };
    const fragment = toFragment(result);
    assert.match(fragment, /^[\w-]+$/);
    assert.deepEqual(fromFragment(fragment), result);
    for (const wrong of [
      { ...result, decode: "20" },
      { ...result, model: "x".repeat(121) },
      null,
      [],
      { threads: 1 },
    ])
      assert.equal(fromFragment(toFragment(/** @type {any} */ (wrong))), undefined);
    for (const wrong of ["%%%", "e30", ""]) assert.equal(fromFragment(wrong), undefined);
    assert.equal(median([3, 1, 2]), 2);
  });
});

describe("the time of a download", () => {
  it("is told by its own rate, after a moment", async () => {
    const { DownloadClock } = await importModule("download-time.ts");
    const clock = new DownloadClock();
    const at = (/** @type {number} */ loadedBytes, phase = "downloading") => ({
      ...{ phase, loadedBytes, totalBytes: 463e6, file: "a.gguf" },
    });
    assert.equal(clock.left(at(0, "connecting"), 0), undefined);
    // What had arrived before is no part of the rate.
    assert.equal(clock.left(at(100e6), 1_000), undefined);
    assert.equal(clock.left(at(101e6), 1_500), undefined);
    assert.equal(clock.left(at(103e6), 4_000), "6 minutes left");
    assert.equal(clock.left(at(452e6), 100_000), "a minute left");
    assert.equal(clock.left({ ...at(200e6), totalBytes: undefined }, 5_000), undefined);
    assert.equal(clock.left(at(463e6, "packing"), 200_000), undefined);
  });

  it("is told in minutes, then in hours", async () => {
    const { timeWords } = await importModule("download-time.ts");
    assert.deepEqual([5, 61, 5_300, 9_000].map(timeWords), [
      "a minute",
      "2 minutes",
      "89 minutes",
      "3 hours",
    ]);
  });
});

describe("two runs", () => {
  it("are compared to the bit", async () => {
    const { compare, digest } = await importModule("parity/compare.ts");
    const run = [
      { token: 4, logprob: -0.5 },
      { token: 9, logprob: -1.25 },
    ];
    const changed = [run[0], { token: 9, logprob: -1.25 - Number.EPSILON }];
    assert.deepEqual(compare(run, run), { isEqual: true, words: "2 tokens equal" });
    assert.match(compare(changed, run).words, /^2 tokens equal, log-probabilities differ by up to 2\.2e−16$/);
    assert.equal(compare([run[0]], run).words, "token 2 is absent, expected 9");
    assert.equal(compare([{ token: 5, logprob: 0 }], run).words, "token 1 is 5, expected 4");
    assert.equal(await digest(run), await digest(structuredClone(run)));
    assert.notEqual(await digest(changed), await digest(run));
  });
});

describe("two texts of one prompt", () => {
  const [choice, another] = [{ name: "a" }, { name: "b" }];
  /** @param {string[]} texts */
  const story = (texts, { model = choice, echo = "Once", logprobs = [-0.5, -1, -2] } = {}) => ({
    ...{ choice: model, echo },
    steps: texts.map((text, at) => ({ text, token: text.length, logprob: logprobs[at] })),
  });
  /** @type {any} */
  let differenceOf;
  before(async () => {
    ({ differenceOf } = await importModule("difference.ts"));
  });

  it("differ first at a token of one vocabulary, or at a character of two", () => {
    const one = story(["a", " red", " fox"]);
    assert.deepEqual(differenceOf(one, story(["a", " green", " fox"]), true), {
      places: [1, 1],
      words:
        "The texts differ from token 2 on: “·red” (36.8 %) in the first, “·green” (36.8 %) in the second.",
    });
    const others = story(["a", " r", "ed", " fish"], { model: another });
    assert.deepEqual(differenceOf(one, others, false).places, [2, 3]);
    const shorter = story(["a", " red"]);
    assert.equal(differenceOf(one, shorter, true), undefined);
    assert.match(
      differenceOf(one, shorter, false).words,
      /from token 3 on: “·fox” \(13\.5 %\) .*, the end in the second/,
    );
    assert.equal(differenceOf(one, story(["a"], { echo: "Twice" }), false), undefined);
  });

  it("are equal, and so may be their bits", () => {
    const one = story(["a", "bc"]);
    assert.match(differenceOf(one, one, false).words, /^Both texts are equal: 2 tokens, and so is every bit/);
    assert.equal(differenceOf(one, one, true), undefined);
    const near = story(["a", "bc"], { logprobs: [-0.5, -1.25] });
    assert.match(differenceOf(one, near, false).words, /differ from token 2 on, by at most 2\.5e-1\.$/);
    const split = story(["ab", "c"], { model: another });
    assert.equal(differenceOf(one, split, false).words, "Both texts are equal: 2 tokens.");
  });
});

describe("a device", () => {
  it("holds a model on the CPU with or without threads, or says why not", async () => {
    const { fitOf, estimatedFit } = await importModule("picker/device-fit.ts");
    const desk = { threadedBytes: 2 ** 32, hasGpu: false };
    assert.deepEqual(fitOf(1e9, desk), {
      runs: "yes",
      words: "Runs here: CPU with threads, CPU without threads",
    });
    assert.equal(fitOf(3e9, { ...desk, threadedBytes: 2 ** 31 }).words, "Runs here: CPU without threads");
    assert.equal(fitOf(3e9, { ...desk, threadedBytes: 0 }).words, "Runs here: CPU");
    assert.match(
      fitOf(5e9, desk).words,
      /^Cannot run here: it needs 5\.1 GB, .* at most 4\.3 GB, and there is no GPU$/,
    );
    assert.equal(fitOf(5e9, { ...desk, hasGpu: true }).runs, "unknown");
    const phone = { ...desk, memoryBytes: 2 ** 31 };
    assert.equal(fitOf(1e9, phone).runs, "yes");
    assert.deepEqual(fitOf(3e9, phone), {
      runs: "no",
      words: "Cannot run here: it needs 3.1 GB, this device has about 2.1 GB",
    });
    const backends = [
      { backend: "relaxed", build: "relaxed-threads", fits: false, reason: "too large" },
      { backend: "webgpu", build: "webgpu", fits: true, reason: "" },
    ];
    assert.deepEqual(estimatedFit(backends), { runs: "yes", words: "Runs here: GPU" });
    assert.equal(estimatedFit([backends[0]]).words, "Cannot run here: too large");
  });

  it("says in a sentence what it holds", async () => {
    const { limitWords } = await importModule("picker/device-fit.ts");
    const most = "A model runs here if it needs at most 4.2 GB of memory";
    const file = "That is not the size of its file.";
    const desk = { threadedBytes: 2 ** 32, hasGpu: false };
    assert.equal(limitWords(desk), `${most}. ${file}`);
    assert.equal(limitWords({ ...desk, threadedBytes: 0 }), `${most}. ${file}`);
    assert.equal(limitWords({ ...desk, threadedBytes: 2 ** 31 }), `${most}, with threads 2.1 GB. ${file}`);
    assert.match(limitWords({ ...desk, hasGpu: true }), /A GPU may hold a larger one/);
    assert.match(limitWords({ ...desk, memoryBytes: 2 ** 31 }), /at most 2\.1 GB of memory\. /);
  });
});

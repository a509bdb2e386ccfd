/** Generations that go on after a reload. */

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Generation } from "../../src/generation.js";
import type { Model } from "../../src/model.js";
import type { ToHost } from "../../src/protocol.js";
import { callOf, FakeOrigin, openOf, textOf } from "./fake-tabs.js";

/** Storage of one tab, which outlives its pages. */
let stored: Map<string, string>;
/** Requests that hosts have got. */
let sent: ToHost[];

const TOOLS = [{ type: "function", function: { name: "count" } }];

/** Has each token written, as if it took longer than the interval. */
function every(): void {
  let time = 0;
  vi.spyOn(Date, "now").mockImplementation(() => {
    time += 2000;
    return time;
  });
}

afterEach(() => vi.restoreAllMocks());
beforeEach(() => {
  stored = new Map();
  sent = [];
});

/** A page of the tab: its modules are loaded anew. */
async function openPage(options = {}): Promise<{ model: Model; end: () => void }> {
  vi.stubGlobal("sessionStorage", {
    getItem: (key: string) => stored.get(key) ?? null,
    setItem: (key: string, text: string) => stored.set(key, text),
    removeItem: (key: string) => stored.delete(key),
  });
  vi.resetModules();
  const { loadTabs } = await import("../../src/shared/load-tabs.js");
  const tab = new FakeOrigin().openTab();
  const source = { kind: "url", layout: "file", name: "a", url: "http://localhost/a" } as const;
  const model = await loadTabs({
    open: openOf(tab, (message) => sent.push(message)),
    model: { source, fetchOptions: { store: false } },
    draft: undefined,
    inWorker: true,
    options: { resume: true, ...options },
    version: "0",
    host: { baseUrl: () => "http://localhost/" },
  });
  return { model, end: () => tab.crash() };
}

/** Reads some tokens of a generation, and then no more. */
async function readSome(generation: Generation | undefined, count: number): Promise<string> {
  const tokens = generation?.[Symbol.asyncIterator]();
  let text = "";
  for (let at = 0; at < count; at += 1) text += (await tokens?.next())?.value?.text;
  return text;
}

/** Reads some tokens of a text in a page, which then ends. */
async function interrupt(options: object, count: number): Promise<void> {
  const { model, end } = await openPage();
  await readSome(model.generate("a prompt", options), count);
  end();
}

describe("a generation of an earlier page", () => {
  it.each([
    ["a given seed", { seed: 4, maxTokens: 30 }, 4],
    ["a large seed", { seed: 2n ** 60n, maxTokens: 30 }, 2n ** 60n],
    ["a sampler with a state", { seed: 4, maxTokens: 30, mirostatTau: 2 }, 4],
    ["calls of tools", { seed: 4, maxTokens: 30, tools: TOOLS }, 4],
    ["calls of tools, generated again", { seed: 4, maxTokens: 30, tools: TOOLS, mirostatTau: 2 }, 4],
  ])("goes on to the undisturbed text: %s", async (_, options, seed) => {
    every();
    await interrupt(options, 11);
    const { model } = await openPage();
    const [kept] = model.resumable();
    const whole = textOf("a prompt", Number(seed), 0, 30);
    expect(kept?.prompt).toBe("a prompt");
    expect(kept?.tokens.length).toBeGreaterThan(0);
    expect(whole.startsWith(kept?.text ?? "none")).toBe(true);
    const generation = kept?.continue();
    let rest = "";
    for await (const { text } of generation ?? []) rest += text;
    expect((kept?.text ?? "") + rest).toBe(whole);
    const result = await generation?.result;
    expect([result?.text, result?.tokens.length]).toEqual([whole, 30]);
    const hasTools = "tools" in options;
    expect(kept?.toolCalls).toEqual(hasTools ? [callOf(kept?.tokens.length ?? 0)] : []);
    expect(result?.toolCalls).toEqual(hasTools ? [callOf(30)] : []);
    expect([...stored]).toEqual([]);
    expect(() => kept?.continue()).toThrow("continued or discarded");
  });

  it("is offered again until it is continued or discarded", async () => {
    await interrupt({ seed: 4, maxTokens: 30 }, 3);
    for (let page = 0; page < 2; page += 1) expect((await openPage()).model.resumable()).toHaveLength(1);
    const { model } = await openPage();
    model.resumable()[0]?.discard();
    expect(model.resumable()).toEqual([]);
    expect((await openPage()).model.resumable()).toEqual([]);
  });

  it("is interrupted twice", async () => {
    every();
    await interrupt({ seed: 4, maxTokens: 30 }, 5);
    const second = await openPage();
    await readSome(second.model.resumable()[0]?.continue(), 5);
    second.end();
    const [kept] = (await openPage()).model.resumable();
    expect(kept?.tokens.length).toBeGreaterThanOrEqual(10);
    const { text, tokens } = (await kept?.continue().result) ?? {};
    expect([text, tokens?.length]).toEqual([textOf("a prompt", 4, 0, 30), 30]);
  });

  it("is not kept once it is stopped", async () => {
    const { model, end } = await openPage();
    const generation = model.generate("a prompt", { seed: 1 });
    await readSome(generation, 2);
    generation.stop();
    end();
    expect((await openPage()).model.resumable()).toEqual([]);
  });

  it("is not kept once it has ended or the model is disposed", async () => {
    const { model } = await openPage();
    await model.generate("a prompt", { seed: 1 }).result;
    expect([...stored]).toEqual([]);
    const running = model
      .generate("a prompt", { seed: 1, maxTokens: 1e6 })
      .result.catch((error) => error.code);
    await model.dispose();
    expect(await running).toBe("disposed");
    expect([...stored]).toEqual([]);
  });
});

describe("resume", () => {
  it("goes on after what is known, with the tokens as an option", async () => {
    every();
    await interrupt({ seed: 4, maxTokens: 30 }, 3);
    const { model } = await openPage();
    const [kept] = model.resumable();
    await kept?.continue().result;
    const request = sent.filter(({ type }) => type === "generate").at(-1);
    expect(request).toMatchObject({ count: 1, options: { seed: 4, generatedTokens: kept?.tokens } });
  });

  it("is refused where a tab has no storage", async () => {
    await expect(
      (async () => {
        const page = openPage();
        vi.stubGlobal("sessionStorage", undefined);
        return page;
      })(),
    ).rejects.toMatchObject({ code: "bad-option" });
  });
});

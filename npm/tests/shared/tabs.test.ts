/** One model for several tabs: election, relay, takeover. */

import { beforeEach, describe, expect, it } from "vitest";
import { SetunError } from "../../src/errors.js";
import type { Generation } from "../../src/generation.js";
import type { Opened } from "../../src/load.js";
import { Leader } from "../../src/shared/leader.js";
import { turns, until } from "../gate.js";
import { FakeOrigin, type FakeTab, type LoadedTab, openOf, randomNumbers, textOf } from "./fake-tabs.js";

let origin: FakeOrigin;
beforeEach(() => {
  origin = new FakeOrigin();
});

async function openTabs(count: number): Promise<[FakeTab[], LoadedTab[]]> {
  const tabs = Array.from({ length: count }, () => origin.openTab());
  return [tabs, await Promise.all(tabs.map((tab) => tab.load()))];
}

/** Reads a text to its end; `onToken` hears each token. */
async function read(generation: Generation | undefined, onToken = () => {}): Promise<string> {
  let text = "";
  for await (const delta of generation ?? []) {
    text += delta.text;
    onToken();
  }
  return text;
}

/** Starts a text, and waits until some of its tokens are here. */
async function begin(generation: Generation | undefined, tokens: number): Promise<{ text: Promise<string> }> {
  let seen = 0;
  const text = read(generation, () => {
    seen += 1;
  });
  text.catch(() => undefined);
  await until(() => seen >= tokens);
  return { text };
}

const options = (seed: number) => ({ seed, maxTokens: 30 });

describe("four tabs", () => {
  it("have one model, and each its own texts", async () => {
    const [, models] = await openTabs(4);
    const texts = models.map((model, seed) => read(model.generate("same prompt", options(seed))[0]));
    expect(await Promise.all(texts)).toEqual([0, 1, 2, 3].map((seed) => textOf("same prompt", seed, 0, 30)));
    expect([origin.loads, origin.mostHosts]).toEqual([1, 1]);
  });

  it.each([1, 5, 50])(
    "have it, too, if a tab hears of the leader before it has its lock: %i turns",
    async (turns) => {
      const tabs = Array.from({ length: 4 }, () => origin.openTab());
      for (const tab of tabs.slice(1)) tab.lockDelay = turns;
      const models = await Promise.all(tabs.map((tab) => tab.load()));
      const texts = models.map((model, seed) => read(model.generate("a prompt", options(seed))[0]));
      expect(await Promise.all(texts)).toEqual([0, 1, 2, 3].map((seed) => textOf("a prompt", seed, 0, 30)));
      expect([origin.loads, origin.mostHosts]).toEqual([1, 1]);
    },
  );

  it("go on when the leader crashes, and when it leaves", async () => {
    const [tabs, models] = await openTabs(4);
    const begun = await Promise.all(
      models.map((model, seed) => begin(model.generate("a prompt", options(seed))[0], 1 + seed)),
    );
    const texts = begun.map(({ text }) => text);
    tabs[0]?.crash();
    expect(await Promise.all(texts.slice(1))).toEqual(
      [1, 2, 3].map((seed) => textOf("a prompt", seed, 0, 30)),
    );
    expect([origin.loads, origin.mostHosts]).toEqual([2, 1]);
    // The second one leads now. What it leaves goes on without another load.
    const more = models.slice(2).map((model, seed) => read(model.generate("more", options(seed))[0]));
    models[1]?.connection.close();
    expect(await Promise.all(more)).toEqual([0, 1].map((seed) => textOf("more", seed, 0, 30)));
    expect(origin.loads).toBe(2);
    for (const model of models.slice(2)) model.connection.close();
    await until(() => origin.hosts.size + origin.channels.size === 0);
  });

  it("stop what a tab has left behind", async () => {
    const [tabs, models] = await openTabs(3);
    for (const model of models) read(model.generate("endless", { maxTokens: 1e6 })[0]).catch(() => undefined);
    await until(() => tabs[0]?.host?.running === 3);
    tabs[1]?.crash();
    models[2]?.connection.close();
    await until(() => tabs[0]?.host?.running === 1);
    models[0]?.connection.close();
    await until(() => origin.hosts.size === 0);
  });

  it("hold the model back where nobody reads, across leaders", async () => {
    const [tabs, models] = await openTabs(2);
    const unread = models[1]?.generate("slow reader", options(1))[0] as Generation;
    const iterator = unread[Symbol.asyncIterator]();
    const first = (await iterator.next()).value?.text;
    await turns(50);
    tabs[0]?.crash();
    await until(() => tabs[1]?.host !== undefined);
    await turns(50);
    expect(tabs[1]?.host?.sent).toBeLessThanOrEqual(4);
    let text = first ?? "";
    for (;;) {
      const { value, done } = await iterator.next();
      if (done) break;
      text += value.text;
      await turns(1);
    }
    expect(text).toBe(textOf("slow reader", 1, 0, 30));
  });
});

describe("a request under way", () => {
  it.each([
    ["several samples", {}, 3],
    ["a sampler with a state", { mirostatTau: 3 }, 1],
  ])("continues with the next leader: %s", async (_, more, count) => {
    const [tabs, models] = await openTabs(2);
    const generations = models[1]?.generate("a prompt", { ...options(5), ...more }, count) ?? [];
    const begun = await Promise.all(generations.map((each) => begin(each, 7)));
    tabs[0]?.crash();
    expect(await Promise.all(begun.map(({ text }) => text))).toEqual(
      generations.map((_, sample) => textOf("a prompt", 5, sample, 30)),
    );
  });

  it("is sent again if it had no answer", async () => {
    const [tabs, models] = await openTabs(2);
    const ids = models[1]?.connection.request({ type: "tokenize", text: "a" }, "tokens");
    tabs[0]?.crash();
    expect((await ids)?.ids).toEqual(Uint32Array.of(1, 2));
  });

  it("stays stopped", async () => {
    const [tabs, models] = await openTabs(2);
    const generation = models[1]?.generate("a prompt", options(5))[0] as Generation;
    await turns(20);
    generation.stop();
    tabs[0]?.crash();
    const { finishReason, text } = await generation.result;
    expect(finishReason).toBe("aborted");
    expect(textOf("a prompt", 5, 0, 30).startsWith(text)).toBe(true);
  });

  it("fails if no tab survives it", async () => {
    const tabs = Array.from({ length: 8 }, () => origin.openTab());
    const models = await Promise.all(tabs.map((tab) => tab.load()));
    const last = models.at(-1)?.connection;
    let answered = false;
    const result = last?.request({ type: "metrics" }, "metrics").catch((error: SetunError) => {
      answered = true;
      return error.code;
    });
    for (const tab of tabs.slice(0, -1)) {
      await until(() => answered || tab.host !== undefined);
      await turns(10);
      tab.crash();
    }
    expect(await result).toBe("device-lost");
  });
});

describe("a load", () => {
  it("that fails in one tab is tried by the next, and each has its own error", async () => {
    const [first, second] = [origin.openTab(), origin.openTab()];
    const error = new SetunError("network", "down");
    const failed = first.load({}, error).catch((thrown) => thrown);
    const model = await second.load();
    expect(await failed).toBe(error);
    expect(await read(model.generate("a", options(1))[0])).toBe(textOf("a", 1, 0, 30));
  });

  it("reports its phases here, and that others wait", async () => {
    const phases: string[][] = [[], []];
    const loads = phases.map((seen) => {
      return origin.openTab().load({ onProgress: ({ phase }) => seen.push(phase) });
    });
    await Promise.all(loads);
    expect(phases).toEqual([["downloading"], expect.arrayContaining([])]);
    expect(phases[1]?.every((phase) => phase === "waiting")).toBe(true);
  });

  it("that is aborted leaves the model to the others", async () => {
    const controller = new AbortController();
    const reason = { mine: true };
    const aborted = origin
      .openTab()
      .load({ signal: controller.signal })
      .catch((thrown) => thrown);
    const model = origin.openTab().load();
    await turns(3);
    controller.abort(reason);
    expect(await aborted).toBe(reason);
    expect(await read((await model).generate("a", options(1))[0])).toBe(textOf("a", 1, 0, 30));
  });

  it("after a failure of the model is a new one", async () => {
    const [tabs, models] = await openTabs(2);
    const error = new SetunError("device-lost", "the worker has ended");
    tabs[0]?.host?.fail(error);
    for (const model of models) {
      await expect(model.connection.request({ type: "metrics" }, "metrics")).rejects.toMatchObject({
        code: "device-lost",
      });
    }
    await until(() => origin.hosts.size === 0);
    const again = await tabs[1]?.load();
    expect(await read(again?.generate("a", options(1))[0])).toBe(textOf("a", 1, 0, 30));
  });
});

describe("a leader that ends while it loads", () => {
  it("gives way at once, and closes what comes of its load", async () => {
    const channel = { onmessage: null, postMessage: () => undefined, close: () => undefined };
    const leader = new Leader({ openChannel: () => channel, withLock: async () => undefined }, "setun:test");
    let arrive: (opened: Opened) => void = () => undefined;
    const opening = new Promise<Opened>((resolve) => {
      arrive = resolve;
    });
    const run = leader.run(() => opening);
    leader.end();
    await run;
    arrive(await openOf(origin.openTab())({}));
    expect(origin.mostHosts).toBe(1);
    await until(() => origin.hosts.size === 0);
  });
});

describe("random ends of tabs", () => {
  it.each(Array.from({ length: 20 }, (_, seed) => seed))("change no text: %i", async (seed) => {
    const random = randomNumbers(seed);
    const [tabs, models] = await openTabs(5);
    const wanted = { maxTokens: 60 };
    const texts = models.map((model, at) => read(model.generate("a prompt", { seed: at, ...wanted })[0]));
    const left = [0, 1, 2, 3, 4];
    while (left.length > 1) {
      await turns(random(100));
      const [at = 0] = left.splice(random(left.length), 1);
      texts[at]?.catch(() => undefined);
      if (random(2) === 0) tabs[at]?.crash();
      else models[at]?.connection.close();
    }
    const [last = 0] = left;
    expect(await texts[last]).toBe(textOf("a prompt", last, 0, 60));
    expect(origin.mostHosts).toBe(1);
  });
});

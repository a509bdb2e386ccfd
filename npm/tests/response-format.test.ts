import { beforeEach, describe, expect, it } from "vitest";
import { engineOptions } from "../src/check-options.js";
import { type GrammarBuild, GrammarCache } from "../src/grammar-cache.js";
import { connectLocal } from "../src/host-links.js";
import { loadOn } from "../src/load.js";
import { type GrammarSource, grammarSource, type ResponseFormat } from "../src/response-format.js";
import type { WasmGrammar } from "../src/wasm.js";
import { countedModel, emptyLog, fakeBuild } from "./fake-wasm.js";

describe("a response format", () => {
  it.each<[ResponseFormat, GrammarSource]>([
    [
      { type: "json_schema", schema: { type: "null" } },
      { kind: "json_schema", text: '{"type":"null"}' },
    ],
    [
      { type: "json_schema", schema: "true" },
      { kind: "json_schema", text: "true" },
    ],
    [
      { type: "json_schema", schema: "{}", openObjects: true },
      { kind: "json_schema", text: '{"x-guidance":{"open_objects":true}}' },
    ],
    [
      { type: "json_schema", schema: "\uFEFF{}", openObjects: true },
      { kind: "json_schema", text: '{"x-guidance":{"open_objects":true}}' },
    ],
    [
      { type: "json_schema", schema: { "x-guidance": { whitespace_flexible: true } }, openObjects: true },
      { kind: "json_schema", text: '{"x-guidance":{"whitespace_flexible":true,"open_objects":true}}' },
    ],
    [
      { type: "json_schema", schema: {}, openObjects: false },
      { kind: "json_schema", text: "{}" },
    ],
    [{ type: "json_object" }, { kind: "json_object", text: "" }],
    [
      { type: "choice", choices: ["a", ""] },
      { kind: "choice", text: '["a",""]' },
    ],
    [
      { type: "grammar", syntax: "regex", definition: "a+" },
      { kind: "regex", text: "a+" },
    ],
    [
      { type: "grammar", syntax: "lark", definition: "start: A" },
      { kind: "lark", text: "start: A" },
    ],
    [
      { type: "grammar", syntax: "gbnf", definition: "root ::= [a]" },
      { kind: "gbnf", text: "root ::= [a]" },
    ],
  ])("compiles to a kind and a text: %j", (responseFormat, grammar) => {
    expect(grammarSource(responseFormat)).toEqual(grammar);
    expect(engineOptions({ responseFormat, maxTokens: 3 })).toEqual({ grammar, maxTokens: 3 });
  });

  it("has no grammar for any text", () => {
    expect(grammarSource({ type: "text" })).toBeNull();
    expect(engineOptions({ responseFormat: { type: "text" }, maxTokens: 3 })).toEqual({ maxTokens: 3 });
  });

  const cyclic: { self?: object } = {};
  cyclic.self = cyclic;
  it.each([
    [undefined],
    [null],
    ["a"],
    [{}],
    [{ type: "json" }],
    [{ type: "text", schema: {} }],
    [{ type: "json_object", strict: true }],
    [{ type: "json_object", openObjects: true }],
    [{ type: "json_schema", schema: {}, openObjects: "yes" }],
    [{ type: "grammar", syntax: "regex" }],
    [{ type: "grammar", syntax: "ebnf", definition: "a" }],
    [{ type: "grammar", syntax: "regex", definition: /a/ }],
    [{ type: "choice", choices: "a" }],
    [{ type: "choice", choices: ["a", 1] }],
    [{ type: "json_schema", schema: 3 }],
    [{ type: "json_schema", schema: null }],
    [{ type: "json_schema", schema: cyclic }],
    [{ type: "json_schema", schema: { maximum: 3n } }],
    [{ type: "json_schema", json_schema: { schema: {} } }],
  ])("is refused if it is malformed: %#", (responseFormat) => {
    expect(grammarSource(responseFormat)).toBeUndefined();
    if (responseFormat === undefined) return;
    const message = expect.stringContaining('responseFormat: expected {type: "text"}');
    const refused = expect.objectContaining({ code: "bad-option", message });
    expect(() => engineOptions({ responseFormat: responseFormat as never })).toThrow(refused);
  });
});

/** Calls of the fake grammar module. */
let done: string[];
let fails: number;

class FakeGrammar implements WasmGrammar {
  readonly #name: string;

  constructor(_: unknown, kind: string, text: string) {
    if (text === "bad") throw Object.assign(new Error("no text of it ever ends"), { code: "bad-option" });
    if (kind !== "share") done.push(`compile ${kind} ${text}`);
    this.#name = text;
  }

  share(): WasmGrammar {
    done.push(`share ${this.#name}`);
    return new FakeGrammar(undefined, "share", `share of ${this.#name}`);
  }

  free(): void {
    done.push(`free ${this.#name}`);
  }
}

async function fakeGrammars(): Promise<GrammarBuild> {
  done.push("load");
  const glue = {
    default: async () => undefined,
    Vocabulary: class {
      constructor(table: Uint8Array) {
        done.push(`vocabulary of ${table.length} bytes`);
      }
      free = () => void done.push("free vocabulary");
      [Symbol.dispose] = () => undefined;
    },
    Grammar: FakeGrammar,
  };
  const compile = async () => {
    fails -= 1;
    if (fails >= 0) throw new Error("the connection broke off");
    return new WebAssembly.Module(Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0));
  };
  return { glue, compile };
}

beforeEach(() => {
  done = [];
  fails = 0;
});

describe("the grammar cache", () => {
  const model = { tokenTable: () => new Uint8Array(5) };

  it("loads the module with the first grammar, and compiles each once", async () => {
    const grammars = new GrammarCache(fakeGrammars);
    expect(done).toEqual([]);
    await Promise.all(["a", "a", "b"].map((text) => grammars.grammar({ kind: "regex", text }, model)));
    const start = ["load", "vocabulary of 5 bytes"];
    expect(done).toEqual([...start, "compile regex a", "share a", "share a", "compile regex b", "share b"]);
  });

  it("keeps the latest eight grammars", async () => {
    const grammars = new GrammarCache(fakeGrammars);
    const ask = (text: string) => grammars.grammar({ kind: "lark", text }, model);
    for (const text of [..."abcdefgh"]) await ask(text);
    await ask("a");
    expect(done.filter((each) => each.startsWith("free"))).toEqual([]);
    await ask("i");
    expect(done.filter((each) => each.startsWith("free"))).toEqual(["free b"]);
    done = [];
    grammars.free();
    expect(done).toEqual([..."cdefghai"].map((text) => `free ${text}`));
    await Promise.resolve();
    expect(done.at(-1)).toBe("free vocabulary");
    await expect(ask("a")).rejects.toMatchObject({ code: "disposed" });
  });

  it("loads the module again after a failure, and survives a grammar that does not compile", async () => {
    const grammars = new GrammarCache(fakeGrammars);
    fails = 1;
    const source = { kind: "gbnf", text: "a" } as const;
    await expect(grammars.grammar(source, model)).rejects.toThrow("broke off");
    await grammars.grammar(source, model);
    await expect(grammars.grammar({ ...source, text: "bad" }, model)).rejects.toThrow("ever ends");
    await grammars.grammar(source, model);
    expect(done.filter((each) => each === "load")).toHaveLength(2);
    await expect(new GrammarCache(undefined).grammar(source, model)).rejects.toMatchObject({
      code: "backend-unavailable",
    });
  });
});

describe("a generation with a response format", () => {
  const files = { "a.safetensors": new Uint8Array(16) };
  const loadWith = (grammars: () => Promise<GrammarBuild>) => {
    const log = emptyLog();
    const load = loadOn({
      builds: ["simd128"],
      initialSharedPages: 0,
      hasWorkers: false,
      baseUrl: () => "http://localhost/",
      embeddedModel: () => new URL("http://localhost/embedded.safetensors"),
      connect: async () => connectLocal({ build: fakeBuild(log), openModel: countedModel(log), grammars }),
    });
    return { log, load };
  };
  const responseFormat = { type: "grammar", syntax: "regex", definition: "a" } as const;

  it("waits for its grammar, and others do not wait", async () => {
    const { log, load } = loadWith(fakeGrammars);
    const model = await load(files);
    const constrained = model.generate("with", { responseFormat, maxTokens: 3 }).text();
    await model.generate("without", { maxTokens: 3 }).text();
    expect(await constrained).toBe("0 1 2 ");
    expect(log.asked.map(({ prompt }) => prompt)).toEqual(["without", "with"]);
    expect(done).toContain("share a");
  });

  it("ends if it is stopped while its grammar is compiled", async () => {
    const { load } = loadWith(fakeGrammars);
    const model = await load(files);
    const [first, second] = model.generateMany("with", { n: 2, responseFormat, maxTokens: 3 });
    first?.stop();
    expect(await first?.result).toMatchObject({ finishReason: "aborted", text: "" });
    expect(await second?.text()).toBe("0 1 2 ");
  });

  it("fails if the grammar module does not load, and others do not fail", async () => {
    fails = 1;
    const { log, load } = loadWith(fakeGrammars);
    const model = await load(files);
    await expect(model.generate("with", { responseFormat }).text()).rejects.toThrow("broke off");
    const refused = model
      .generate("with", {
        responseFormat: { ...responseFormat, definition: "bad" },
      })
      .text();
    await expect(refused).rejects.toMatchObject({ name: "SetunError", code: "bad-option" });
    expect(await model.generate("with", { responseFormat, maxTokens: 3 }).text()).toBe("0 1 2 ");
    expect(log.freed).toEqual(["generation"]);
  });

  it("fails if the model is disposed meanwhile", async () => {
    const { log, load } = loadWith(fakeGrammars);
    const model = await load(files);
    const generation = model.generate("with", { responseFormat }).text();
    await model.dispose();
    await expect(generation).rejects.toMatchObject({ code: "disposed" });
    expect(log.freed).toEqual(["model"]);
  });
});

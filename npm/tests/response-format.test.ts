import { beforeEach, describe, expect, it } from "vitest";
import { type GrammarBuild, GrammarCache } from "../src/grammar-cache.js";
import { connectLocal } from "../src/host-links.js";
import { loadOn } from "../src/load.js";
import { engineOptions } from "../src/options.js";
import { type GrammarSource, grammarSource, type ResponseFormat } from "../src/response-format.js";
import type { WasmGrammar } from "../src/wasm.js";
import { countedModel, emptyLog, fakeBuild } from "./fake-wasm.js";

describe("a form in writing", () => {
  it.each<[ResponseFormat, GrammarSource]>([
    [{ jsonSchema: { type: "null" } }, { kind: "jsonSchema", text: '{"type":"null"}' }],
    [{ jsonSchema: "true" }, { kind: "jsonSchema", text: "true" }],
    [{ json: true }, { kind: "json", text: "" }],
    [{ regex: "a+" }, { kind: "regex", text: "a+" }],
    [{ choices: ["a", ""] }, { kind: "choices", text: '["a",""]' }],
    [{ lark: "start: A" }, { kind: "lark", text: "start: A" }],
    [{ gbnf: "root ::= [a]" }, { kind: "gbnf", text: "root ::= [a]" }],
  ])("has its kind and its text: %j", (form, text) => {
    expect(grammarSource(form)).toEqual(text);
    expect(engineOptions({ form, maxTokens: 3 })).toEqual({ form: text, maxTokens: 3 });
  });

  const cyclic: { self?: object } = {};
  cyclic.self = cyclic;
  it.each([
    [undefined],
    [null],
    ["a"],
    [{}],
    [{ json: false }],
    [{ valueOf: "a" }],
    [{ regex: "a", gbnf: "a" }],
    [{ regex: /a/ }],
    [{ choices: "a" }],
    [{ choices: ["a", 1] }],
    [{ jsonSchema: 3 }],
    [{ jsonSchema: null }],
    [{ jsonSchema: cyclic }],
    [{ jsonSchema: { maximum: 3n } }],
  ])("is refused where it is none: %#", (form) => {
    expect(grammarSource(form)).toBeUndefined();
    if (form === undefined) return;
    const message = expect.stringContaining("form: expected one of {jsonSchema}");
    const refused = expect.objectContaining({ code: "bad-option", message });
    expect(() => engineOptions({ form: form as never })).toThrow(refused);
  });
});

/** What the fake module did. */
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

describe("the grammars of a model", () => {
  const model = { tokenTable: () => new Uint8Array(5) };

  it("come with the first form, and are compiled once each", async () => {
    const grammars = new GrammarCache(fakeGrammars);
    expect(done).toEqual([]);
    await Promise.all(["a", "a", "b"].map((text) => grammars.grammar({ kind: "regex", text }, model)));
    const start = ["load", "vocabulary of 5 bytes"];
    expect(done).toEqual([...start, "compile regex a", "share a", "share a", "compile regex b", "share b"]);
  });

  it("are kept as long as they are among the latest eight", async () => {
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

  it("are looked for again where the module did not come, and outlive a form that cannot be followed", async () => {
    const grammars = new GrammarCache(fakeGrammars);
    fails = 1;
    const form = { kind: "gbnf", text: "a" } as const;
    await expect(grammars.grammar(form, model)).rejects.toThrow("broke off");
    await grammars.grammar(form, model);
    await expect(grammars.grammar({ ...form, text: "bad" }, model)).rejects.toThrow("ever ends");
    await grammars.grammar(form, model);
    expect(done.filter((each) => each === "load")).toHaveLength(2);
    await expect(new GrammarCache(undefined).grammar(form, model)).rejects.toMatchObject({
      code: "backend-unavailable",
    });
  });
});

describe("a generation with a form", () => {
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
  const form = { regex: "a" };

  it("waits for its grammar, and others do not", async () => {
    const { log, load } = loadWith(fakeGrammars);
    const model = await load(files);
    const formed = model.generate("with", { form, maxTokens: 3 }).text();
    await model.generate("without", { maxTokens: 3 }).text();
    expect(await formed).toBe("0 1 2 ");
    expect(log.asked.map(({ prompt }) => prompt)).toEqual(["without", "with"]);
    expect(done).toContain("share a");
  });

  it("ends if it is stopped while its grammar is compiled", async () => {
    const { load } = loadWith(fakeGrammars);
    const model = await load(files);
    const [first, second] = model.samples("with", 2, { form, maxTokens: 3 });
    first?.stop();
    expect(await first?.result).toMatchObject({ finishReason: "aborted", text: "" });
    expect(await second?.text()).toBe("0 1 2 ");
  });

  it("fails, and others do not, if the grammar does not come", async () => {
    fails = 1;
    const { log, load } = loadWith(fakeGrammars);
    const model = await load(files);
    await expect(model.generate("with", { form }).text()).rejects.toThrow("broke off");
    const refused = model.generate("with", { form: { regex: "bad" } }).text();
    await expect(refused).rejects.toMatchObject({ name: "SetunError", code: "bad-option" });
    expect(await model.generate("with", { form, maxTokens: 3 }).text()).toBe("0 1 2 ");
    expect(log.freed).toEqual(["generation"]);
  });

  it("fails if the model is disposed of meanwhile", async () => {
    const { log, load } = loadWith(fakeGrammars);
    const model = await load(files);
    const generation = model.generate("with", { form }).text();
    await model.dispose();
    await expect(generation).rejects.toMatchObject({ code: "disposed" });
    expect(log.freed).toEqual(["model"]);
  });
});

import { describe, expect, it } from "vitest";
import { engineOptions } from "../src/check-options.js";
import type { GrammarBuild } from "../src/grammar-cache.js";
import { connectLocal } from "../src/host-links.js";
import { loadOn } from "../src/load.js";
import { joinCalls, type Tool, type ToolCall, type ToolChoice, toolGrammar } from "../src/tools.js";
import { countedModel, emptyLog, fakeBuild } from "./fake-wasm.js";

const tools: Tool[] = [
  { type: "function", function: { name: "now" } },
  {
    type: "function",
    function: { name: "rain", description: "Will it?", parameters: { type: "object" }, strict: true },
  },
];

const named = (name: string): ToolChoice => ({ type: "function", function: { name } });

describe("options of tools", () => {
  it("become JSON text, with the default choice", () => {
    expect(engineOptions({ tools, maxTokens: 3 })).toEqual({
      maxTokens: 3,
      tools: { tools: JSON.stringify(tools), toolChoice: '"auto"', parallelToolCalls: true },
    });
    const sent = engineOptions({ tools, toolChoice: named("rain"), parallelToolCalls: false }).tools;
    expect(sent).toMatchObject({ toolChoice: JSON.stringify(named("rain")), parallelToolCalls: false });
  });

  it("go beside a response format, which is that of answers without calls", () => {
    const sent = engineOptions({ tools, responseFormat: { type: "json_object" } });
    expect(sent).toMatchObject({
      tools: { toolChoice: '"auto"' },
      grammar: { kind: "json_object", text: "" },
    });
    const source = toolGrammar(sent.tools as never, "hermes", sent.grammar);
    expect(JSON.parse(source.text).text).toEqual({ kind: "json_object", text: "" });
  });

  it("are nothing where the model is offered none", () => {
    const nothing = [
      {},
      { tools: [] },
      { tools, toolChoice: "none" as const },
      { toolChoice: "auto" as const },
    ];
    for (const options of nothing) expect(engineOptions(options)).toEqual({});
  });

  it.each([
    [{ tools: {} }, "tools: expected an array of {type"],
    [{ tools: [{ name: "f" }] }, "tools: expected an array of {type"],
    [{ tools: [{ type: "function", function: { name: "f", parameters: [] } }] }, "tools: expected an array"],
    [{ tools: [null] }, "tools: expected an array of {type"],
    [{ tools, toolChoice: "any" }, 'toolChoice: expected "auto", "none", "required" or {type'],
    [{ tools, toolChoice: { type: "tool", name: "now" } }, 'toolChoice: expected "auto"'],
    [{ tools, parallelToolCalls: 1 }, "parallelToolCalls: expected one of true, false, found 1"],
    [{ toolChoice: "required" }, "toolChoice: required is no tool of the request"],
    [{ tools, toolChoice: named("snow") }, "toolChoice: snow is no tool of the request"],
    [{ tools: [{ type: "function", function: { name: "f", strict: 1 } }] }, "tools: expected an array"],
  ])("are refused: %j", (options, message) => {
    expect(() => engineOptions(options as never)).toThrow(message);
  });

  it("refuse schemas that are no JSON", () => {
    const parameters: Record<string, unknown> = {};
    parameters.self = parameters;
    const cyclic = [{ type: "function", function: { name: "f", parameters } }] as const;
    expect(() => engineOptions({ tools: cyclic })).toThrow("tools: expected values that JSON has");
  });
});

it("joins pieces of calls", () => {
  const calls: ToolCall[] = [];
  joinCalls(calls, [{ index: 0, id: "a", name: "now" }]);
  joinCalls(calls, [
    { index: 0, arguments: '{"a":' },
    { index: 0, arguments: "1}" },
    { index: 1, id: "b", name: "rain", arguments: "{}" },
  ]);
  expect(calls).toEqual([
    { id: "a", type: "function", function: { name: "now", arguments: '{"a":1}' } },
    { id: "b", type: "function", function: { name: "rain", arguments: "{}" } },
  ]);
});

it("compiles the grammar of the calls in the model's format, and hands both on", async () => {
  const compiled: [string, unknown][] = [];
  const grammars = async (): Promise<GrammarBuild> => ({
    glue: {
      default: async () => undefined,
      Vocabulary: class {
        free() {}
        [Symbol.dispose]() {}
      },
      Grammar: class {
        constructor(_: unknown, kind: string, text: string) {
          compiled.push([kind, JSON.parse(text)]);
        }
        share() {
          return this;
        }
        free() {}
      },
    },
    compile: async () => new WebAssembly.Module(Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0)),
  });
  const log = emptyLog();
  const load = loadOn({
    builds: ["simd128"],
    initialSharedPages: 0,
    hasWorkers: false,
    baseUrl: () => "http://localhost/",
    embeddedModel: () => new URL("http://localhost/embedded.safetensors"),
    connect: async () => connectLocal({ build: fakeBuild(log), openModel: countedModel(log), grammars }),
  });
  const model = await load({ "a.safetensors": new Uint8Array(16) });
  const { toolCalls } = await model.generate("abc", { tools, toolChoice: "required", maxTokens: 4 }).result;
  const request = { tools, toolChoice: "required", format: "hermes", parallelToolCalls: true };
  expect(compiled).toEqual([["tools", request]]);
  expect(log.tools.map((text) => JSON.parse(text))).toEqual([request]);
  const source = toolGrammar({ tools: "[]", toolChoice: '"auto"', parallelToolCalls: false }, "llama");
  expect(JSON.parse(source.text)).toEqual({
    tools: [],
    toolChoice: "auto",
    format: "llama",
    parallelToolCalls: false,
  });
  // The fake model writes one call, in two pieces.
  expect(toolCalls).toEqual([{ id: "i", type: "function", function: { name: "now", arguments: "{}" } }]);
});

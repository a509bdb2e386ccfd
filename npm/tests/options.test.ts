import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { BEAMS } from "../src/beam-options.js";
import { check, checkLoadOptions, checkMessages, engineOptions } from "../src/check-options.js";
import { isContextStrategy, withCounts } from "../src/context-strategy.js";
import type { ChatMessage } from "../src/protocol.js";

interface Case {
  readonly key: string;
  readonly expected: string;
  readonly isTime: boolean;
  readonly accepted: readonly unknown[];
  readonly refused: readonly unknown[];
}

/** Values at the ends of each option's range and just outside, written by `cargo xtask options`. */
const CASES: readonly Case[] = JSON.parse(
  readFileSync(new URL("../../crates/setun/tests/options/cases.json", import.meta.url), "utf8"),
);

const badOption = (message: string) =>
  expect.objectContaining({ code: "bad-option", message: expect.stringContaining(message) });

describe("engineOptions", () => {
  it("passes the given options on, without the signal", () => {
    const options = { maxTokens: 3, temperature: 0, stop: ["."], seed: 2n ** 64n - 1n, logprobs: true };
    expect(engineOptions({ ...options, signal: new AbortController().signal })).toEqual(options);
  });

  it("takes one string where several may be given", () => {
    expect(engineOptions({ stop: ".", badWords: "a", temperature: 0 })).toEqual({
      stop: ["."],
      badWords: ["a"],
      temperature: 0,
    });
  });

  it("leaves out undefined options", () => {
    const options = { maxTokens: undefined } as object;
    expect(Object.keys(engineOptions(options))).toEqual([]);
  });

  it.each([
    ["temprature", 1],
    ["toString", 1],
    ["maxTokens", 0],
    ["maxTokens", -1],
    ["maxTokens", 1.5],
    ["maxTokens", "3"],
    ["temperature", -0.1],
    ["temperature", 9.9e-7],
    ["temperature", 1e-40],
    ["temperature", Number.NaN],
    ["temperature", Number.POSITIVE_INFINITY],
    ["topK", -1],
    ["topP", -0.01],
    ["topP", 1.01],
    ["minP", -0.1],
    ["minP", 1.1],
    ["repetitionPenalty", 0],
    ["dynamicTemperature", -1],
    ["dynamicTemperatureExponent", 0],
    ["topNSigma", -0.1],
    ["typicalP", 1.1],
    ["epsilonCutoff", 1],
    ["etaCutoff", -0.1],
    ["xtcProbability", 1.1],
    ["xtcThreshold", 0.51],
    ["mirostatTau", Number.POSITIVE_INFINITY],
    ["mirostatEta", -1],
    ["frequencyPenalty", 2.1],
    ["presencePenalty", -2.1],
    ["noRepeatNgram", 1.5],
    ["dryMultiplier", -1],
    ["dryBase", 0.9],
    ["dryAllowedLength", -1],
    ["dryRange", "3"],
    ["dryBreakers", [""]],
    ["logitBias", [1]],
    ["logitBias", { a: 1 }],
    ["logitBias", { 3: Number.NaN }],
    ["logitBias", { 4294967296: 1 }],
    ["allowedTokens", 3],
    ["bannedTokens", [-1]],
    ["badWords", 7],
    ["minTokens", -1],
    ["samplingOrder", ["top_k"]],
    ["samplingOrder", ["topK", "topK"]],
    ["seed", -1],
    ["seed", 2 ** 53],
    ["seed", 2n ** 64n],
    ["stop", ""],
    ["stop", [""]],
    ["filter", { word: "a", stop: true }],
    ["filter", [{ word: "a" }]],
    ["filter", [{ word: "", stop: true }]],
    ["filter", [{ word: "a", stop: false }]],
    ["filter", [{ word: "a", stop: true, replace: "b" }]],
    ["filter", [{ word: "a", replace: 1 }]],
    ["filter", [{ regex: "a" }]],
    ["filter", [{ regex: /a/, stop: true }]],
    ["filter", [{ regex: "a", word: "a", stop: true }]],
    ["filter", [{ regex: "a", ignoreCase: true, stop: true }]],
    ["filter", [{ word: "a", replace: "", wholeWord: "no" }]],
    ["filter", [{ word: "a", stop: true, whole: true }]],
    ["logprobs", 1],
    ["topLogprobs", -1],
    ["topLogprobs", true],
    ["promptLogprobs", "yes"],
    ["speculative", 12],
    ["contextOverflow", "go on"],
    ["contextOverflow", "toString"],
    ["contextOverflow", null],
    ["contextOverflow", {}],
    ["contextOverflow", { type: "toString", keep: 4, room: 2 }],
    ["contextOverflow", { type: "truncate_middle", keep: 4 }],
    ["contextOverflow", { type: "truncate_middle", keep: 4, room: 0 }],
    ["contextOverflow", { type: "sliding_window", sinks: 4, window: 1.5 }],
    ["contextOverflow", { type: "sliding_window", sinks: 4, window: 8, room: 2 }],
    ["contextOverflow", { type: "sliding_window", keep: 4, room: 8 }],
    ["priority", 0.5],
    ["priority", 2 ** 31],
    ["priority", "high"],
    ["timeout", -1],
    ["timeout", Number.POSITIVE_INFINITY],
    ["signal", {}],
  ])("refuses %s: %s", (name, value) => {
    expect(() => engineOptions({ [name]: value })).toThrow(badOption(`${name}: `));
  });

  it.each([
    ["temperature", 1e-6],
    ["temperature", 0],
    ["topP", 0],
    ["topP", 1],
    ["minP", 0],
    ["etaCutoff", 0.999],
    ["xtcThreshold", 0.5],
    ["presencePenalty", -2],
    ["logitBias", { 3: -100, 70000: 0.5 }],
    ["allowedTokens", [0, 4294967295]],
    ["samplingOrder", ["topP", "temperature"]],
    ["filter", []],
    [
      "filter",
      [
        { word: "a", stop: true },
        { word: "b c", replace: "", wholeWord: false, ignoreCase: true },
        { regex: "[0-9]+", replace: "#" },
      ],
    ],
    ["topLogprobs", 0],
    ["promptLogprobs", false],

    ["contextOverflow", "stop"],
    ["contextOverflow", "truncate_middle"],
    ["contextOverflow", "sliding_window"],
    ["contextOverflow", { type: "truncate_middle", keep: 0, room: 1 }],
    ["contextOverflow", { type: "sliding_window", sinks: 4, window: 8 }],
    ["priority", -(2 ** 31)],
    ["timeout", 0.5],
  ])("accepts %s: %s", (name, value) => {
    expect(engineOptions({ [name]: value })).toEqual({ [name]: value });
  });

  it("has the counts of a strategy's name from the context", () => {
    expect(withCounts("truncate_middle", 4096)).toEqual({ type: "truncate_middle", keep: 1024, room: 1024 });
    expect(withCounts("sliding_window", 511)).toEqual({ type: "sliding_window", sinks: 4, window: 255 });
    for (const length of [1, 2, 3, 512])
      for (const name of ["truncate_middle", "sliding_window"] as const)
        expect(isContextStrategy(withCounts(name, length))).toBe(true);
    const own = { type: "sliding_window", sinks: 0, window: 9 } as const;
    expect([withCounts("stop", 512), withCounts(own, 512)]).toEqual(["stop", own]);
  });

  it("keeps the callback of a prompt's progress on the page", () => {
    expect(engineOptions({ onPromptProgress: () => undefined })).toEqual({ promptProgress: true });
    expect(() => engineOptions({ onPromptProgress: true as never })).toThrow(badOption("onPromptProgress: "));
  });

  for (const { key, expected, isTime, accepted, refused } of CASES.filter(({ key }) => key !== "")) {
    const inUnits = (value: unknown) => (isTime ? (value as number) * 1e3 : value);
    const isOfBeams = Object.hasOwn(BEAMS, key);
    const [outer = "", inner] = key.split(".");
    const found = (value: unknown) => ({ [inner ?? outer]: inUnits(value) });
    const checked = (value: unknown) => {
      const options = inner === undefined ? found(value) : { [outer]: found(value) };
      if (!isOfBeams) return engineOptions(options);
      check(options, BEAMS);
      return options;
    };
    const words = (isTime ? expected.slice(0, expected.indexOf(" of seconds")) : expected)
      // One may be given alone.
      .replace("a list of non-empty strings", "a non-empty string or a list of them");

    it.each(accepted.map((value) => [value]))(`accepts ${key}: %j`, (value) => {
      expect(checked(value)).toEqual(found(value));
    });

    it.each(refused.map((value) => [value]))(
      `refuses ${key}: %j, with the words of the option table`,
      (value) => {
        expect(() => checked(value)).toThrow(badOption(`${key}: expected ${words}`));
      },
    );
  }

  it("names the option that was meant, or all", () => {
    expect(() => engineOptions({ max_tokens: 1 } as object)).toThrow(
      badOption("max_tokens: unknown option; did you mean maxTokens?"),
    );
    expect(() => engineOptions({ xyzzy: 1 } as object)).toThrow(badOption("expected one of parseSpecial, "));
  });
});

describe("checkLoadOptions", () => {
  it.each([
    ["threads", 0],
    ["threads", 65],
    ["backend", 1],
    ["worker", "no"],
    ["onProgress", true],
    ["signal", "stop"],
    ["contexts", 0],
    ["maxConcurrent", 0.5],
    ["queue", 1.5],
    ["pretokenizer", ""],
    ["pretokenizer", 2],
    ["activationGroup", 48],
    ["activationGroup", "32"],
    ["activationGroup", "rows"],
  ])("refuses %s: %s", (name, value) => {
    expect(() => checkLoadOptions({ [name]: value })).toThrow(badOption(`${name}: `));
  });

  it("names the option that was meant, or all", () => {
    expect(() => checkLoadOptions({ thread: 2 } as object)).toThrow(
      badOption("thread: unknown option; did you mean threads?"),
    );
    expect(() => checkLoadOptions({ speculative: { drafts: "a" } } as object)).toThrow(
      badOption("speculative.drafts: unknown option; did you mean draft?"),
    );
    expect(() => checkLoadOptions({ xyzzy: 1 } as object)).toThrow(badOption("expected one of onProgress, "));
  });
});

describe("checkMessages", () => {
  it("accepts roles and contents", () => {
    const messages: ChatMessage[] = [
      { role: "user", content: "" },
      { role: "user", content: [{ type: "text", text: "a" }] },
      { role: "assistant", content: null, tool_calls: [{ type: "function" }] },
      { role: "tool", tool_call_id: "1" },
    ];
    expect(() => checkMessages(messages)).not.toThrow();
  });

  it.each([
    ["hello"],
    [[{ content: "" }]],
    [[null]],
    [[{ role: 1, content: "" }]],
    [[{ role: "user", content: 1 }]],
  ])("refuses %j", (messages) => {
    expect(() => checkMessages(messages as never)).toThrow(badOption("messages: "));
  });
});

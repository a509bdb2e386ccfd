import { describe, expect, it } from "vitest";
import { checkLoadOptions, checkMessages, engineOptions } from "../src/options.js";

const badOption = (message: string) =>
  expect.objectContaining({ code: "bad-option", message: expect.stringContaining(message) });

describe("engineOptions", () => {
  it("passes on what was given, without the signal", () => {
    const options = { maxTokens: 3, temperature: 0, stop: ["."], seed: 2n ** 64n - 1n, logprobs: true };
    expect(engineOptions({ ...options, signal: new AbortController().signal })).toEqual(options);
  });

  it("leaves out what is undefined", () => {
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
    ["seed", -1],
    ["seed", 2 ** 53],
    ["seed", 2n ** 64n],
    ["stop", "."],
    ["stop", [""]],
    ["logprobs", 1],
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
  ])("takes %s: %s", (name, value) => {
    expect(engineOptions({ [name]: value })).toEqual({ [name]: value });
  });

  it("says which options there are", () => {
    expect(() => engineOptions({ max_tokens: 1 } as object)).toThrow(
      badOption("known: maxTokens, temperature"),
    );
  });
});

describe("checkLoadOptions", () => {
  it.each([
    ["thread", 2],
    ["threads", 0],
    ["threads", 65],
    ["backend", 1],
    ["worker", "no"],
    ["onProgress", true],
    ["signal", "stop"],
  ])("refuses %s: %s", (name, value) => {
    expect(() => checkLoadOptions({ [name]: value })).toThrow(badOption(`${name}: `));
  });
});

describe("checkMessages", () => {
  it("takes roles and contents", () => {
    expect(() => checkMessages([{ role: "user", content: "" }])).not.toThrow();
  });

  it.each([["hello"], [[{ role: "user" }]], [[null]], [[{ role: 1, content: "" }]]])(
    "refuses %j",
    (messages) => {
      expect(() => checkMessages(messages as never)).toThrow(badOption("messages: "));
    },
  );
});

import { describe, expect, it } from "vitest";
import { nearestName, shown } from "../src/shown.js";

describe("a value in a message", () => {
  const circle: Record<string, unknown> = {};
  circle.itself = circle;
  it.each([
    ["a", '"a"'],
    [1.5, "1.5"],
    [2n, "2"],
    [null, "null"],
    [undefined, "undefined"],
    [{ type: "json" }, '{"type":"json"}'],
    [["a", 1], '["a",1]'],
    [new Uint8Array(3), "a value of class Uint8Array"],
    [function processor() {}, "the function processor"],
    [circle, "an object"],
    [[Number.NaN, undefined, 2n], '["NaN","undefined","2"]'],
    [{ toJSON: () => undefined }, '"undefined"'],
    ["x".repeat(100), `"${"x".repeat(59)}…`],
  ])("is shown: %s", (value, expected) => expect(shown(value)).toBe(expected));
});

describe("the nearest name", () => {
  const names = ["temperature", "topK", "topP", "maxTokens", "stop"];
  it.each([
    ["temprature", "temperature"],
    ["max_tokens", "maxTokens"],
    ["topk", "topK"],
    ["toppp", "topP"],
    ["toString", undefined],
    ["n", undefined],
    ["topA", undefined],
    ["", undefined],
  ])("of %s", (name, expected) => expect(nearestName(name, names)).toBe(expected));
});

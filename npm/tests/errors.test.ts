import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { asSetunError, ERROR_CODES, fromWire, SetunError, toWire } from "../src/errors.js";

describe("errors", () => {
  it("keep their code and cause across a worker", () => {
    const error = new SetunError("network", "no answer", { cause: new TypeError("failed to fetch") });
    const arrived = fromWire(structuredClone(toWire(error)));
    expect(arrived).toBeInstanceOf(SetunError);
    expect(arrived).toMatchObject({
      code: "network",
      message: "no answer",
      cause: { message: "failed to fetch" },
    });
  });

  it("keep the name of an error without a code", () => {
    const arrived = fromWire(structuredClone(toWire(new RangeError("odd"))));
    expect(arrived).not.toBeInstanceOf(SetunError);
    expect(arrived).toMatchObject({ name: "RangeError", message: "odd" });
  });

  it("cross a worker with any cause", () => {
    const error = new SetunError("network", "x", { cause: () => 1 });
    expect(() => structuredClone(toWire(error))).not.toThrow();
    expect(structuredClone(toWire("just text"))).toMatchObject({ message: "just text" });
    const odd = new SetunError("network", "x", { cause: { status: 5 } });
    expect(toWire(odd).cause).toBe('{"status":5}');
    expect(toWire({ status: 5 }).message).toBe('{"status":5}');
    expect(toWire(undefined).message).toBe("undefined");
  });

  it("become a SetunError with a known code only", () => {
    expect(asSetunError(Object.assign(new Error("m"), { code: "truncated" }))).toBeInstanceOf(SetunError);
    const other = Object.assign(new Error("m"), { code: "ENOENT" });
    expect(asSetunError(other)).toBe(other);
  });

  it.each([
    ["top_p is 1.5, expected from 0 to 1", "topP is 1.5, expected from 0 to 1"],
    ["repetition_penalty is 0, expected above 0", "repetitionPenalty is 0, expected above 0"],
    ["option `max_tokens` is 0, expected 1 or more", "option `maxTokens` is 0, expected 1 or more"],
    ["logit_bias names token 9, expected an id below 4", "logitBias names token 9, expected an id below 4"],
    ["temperature is -1, expected 0", "temperature is -1, expected 0"],
    ["a template says: max_tokens is 3", "a template says: max_tokens is 3"],
  ])("have option names in camel case: %s", (message, expected) => {
    const error = asSetunError(Object.assign(new Error(message), { code: "bad-option" }));
    expect(error).toMatchObject({ code: "bad-option", message: expected });
  });

  it.each([
    ["invalid type: string, expected usize", "invalid type: string, expected a whole number of at least 0"],
    [
      "invalid value: integer `-1`, expected u64",
      "invalid value: integer `-1`, expected a whole number of at least 0",
    ],
    ["expected i64 at line 1", "expected a whole number at line 1"],
    ["expected f64 at line 1", "expected a number at line 1"],
    ["expected struct RawTensor", "expected an object"],
    ["expected u80", "expected u80"],
  ])("have no types of Rust: %s", (message, expected) => {
    const error = asSetunError(Object.assign(new Error(message), { code: "bad-checkpoint" }));
    expect(error).toMatchObject({ message: expected });
  });

  it("of other kinds keep their message", () => {
    const error = asSetunError(Object.assign(new Error("mlp_bias is x"), { code: "bad-checkpoint" }));
    expect(error).toMatchObject({ message: "mlp_bias is x" });
  });

  it("are all in docs/errors.md, and nothing else is", () => {
    const text = readFileSync(new URL("../../docs/errors.md", import.meta.url), "utf8");
    const documented = [...text.matchAll(/^## `([a-z-]+)`$/gm)].map(([, code]) => code);
    expect(documented.sort()).toEqual([...ERROR_CODES].sort());
  });
});

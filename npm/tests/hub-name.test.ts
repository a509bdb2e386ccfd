import { describe, expect, it } from "vitest";
import { DEFAULT_ENDPOINT, parseHubName } from "../src/hub-name.js";
import { modelSource } from "../src/sources.js";

const folder = { kind: "hub", layout: "folder", endpoint: DEFAULT_ENDPOINT };

describe("parseHubName", () => {
  it.each([
    ["hf:o/n-1.58", { ...folder, name: "n-1.58", model: "o/n-1.58" }],
    ["hf:o/n@refs/pr/1", { ...folder, name: "n", model: "o/n", revision: "refs/pr/1" }],
    ["hf:o/n:a/b.gguf", { ...folder, layout: "file", name: "a/b.gguf", model: "o/n", file: "a/b.gguf" }],
    [
      "hf:o/n@v1:b.SETUN",
      { ...folder, layout: "file", name: "b.SETUN", model: "o/n", revision: "v1", file: "b.SETUN" },
    ],
  ])("takes %s apart", async (text, source) => {
    expect(parseHubName(text)).toEqual(source);
    expect(await modelSource(text, "https://example.org/")).toEqual(source);
  });

  it("keeps the given endpoint and token", () => {
    const hub = { endpoint: "http://127.0.0.1:80/mirror/", token: "t" };
    expect(parseHubName("hf:o/n", hub)).toMatchObject({
      endpoint: "http://127.0.0.1/mirror",
      token: "t",
    });
    expect(() => parseHubName("hf:o/n", { endpoint: "ftp://h" })).toThrow(/endpoint/);
    expect(() => parseHubName("hf:o/n", { endpoint: "hub" })).toThrow(/endpoint/);
  });

  it.each([
    "hf:",
    "hf:n",
    "hf:h/o/n",
    "hf:../n",
    "hf:o/..",
    "hf:o/n@",
    "hf:o n/n",
    "hf:o/con",
    "hf:o/n:",
    "hf:o/n:../c.gguf",
    "hf:o/n:config.json",
  ])("refuses %s", (text) => {
    expect(() => parseHubName(text)).toThrow(expect.objectContaining({ code: "bad-option" }));
  });
});

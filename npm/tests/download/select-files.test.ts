import { describe, expect, it } from "vitest";
import { entryOfSelection, selectFiles, selectStoredFiles } from "../../src/download/select-files.js";

const chosen = (names: readonly string[], asked?: string) =>
  selectFiles("o/n", "https://h/o/n", names, asked);

describe("file selection", () => {
  it.each([
    [["a.setun", "model.safetensors", "config.json", "b.gguf"], ["a.setun"]],
    [["model.safetensors", "config.json", "b-i2_s.gguf"], ["model.safetensors"]],
    [["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "config.json"], 2],
    [["model.safetensors", "model-00001-of-00001.safetensors", "config.json"], ["model.safetensors"]],
    [["a-q8.gguf", "a-TQ2_0.gguf", "a-i2_s.gguf"], ["a-i2_s.gguf"]],
    [["a-q8.gguf", "a-TQ2_0.gguf"], ["a-TQ2_0.gguf"]],
    [
      ["x-00002-of-00002.gguf", "x-00001-of-00002.gguf"],
      ["x-00001-of-00002.gguf", "x-00002-of-00002.gguf"],
    ],
    [["a-F16.gguf", "a-PQ2_0.gguf", "a-Q2_0.gguf", "a-Q2_0_g64.gguf"], ["a-PQ2_0.gguf"]],
    [["a-F16.gguf", "a-Q2_0.gguf"], ["a-Q2_0.gguf"]],
    [["a-PTQ1_0.gguf", "a-F16.gguf"], ["a-PTQ1_0.gguf"]],
    [["README.md", "gguf/a-F16.gguf", "gguf/a-I2_S.gguf"], ["gguf/a-I2_S.gguf"]],
    [["config.json", "onnx/model.onnx", "gguf/a.gguf"], ["gguf/a.gguf"]],
    [
      ["config.json", "onnx/model.onnx", "onnx/model_q2f16.onnx", "onnx/model_q2f16.onnx_data"],
      ["onnx/model_q2f16.onnx", "onnx/model_q2f16.onnx_data"],
    ],
    [["other.safetensors", "README.md"], ["other.safetensors"]],
    [["model.safetensors"], ["model.safetensors"]],
  ])("selects the best: %j", (names, weights) => {
    const found = chosen(names).weights;
    if (typeof weights === "number") expect(found).toHaveLength(weights);
    else expect(found).toEqual(weights);
  });

  it("selects the weights and the files that belong to them", () => {
    const names = [
      "config.json",
      "LICENSE",
      "README.md",
      "pytorch_model.bin",
      "tokenizer.json",
      "vocab.json",
    ];
    expect(chosen([...names, "m.gguf"]).companions).toEqual(["config.json", "tokenizer.json", "LICENSE"]);
    const index = "model.safetensors.index.json";
    expect(chosen(["config.json", index, "model-00001-of-00001.safetensors"]).companions).toContain(index);
    expect(chosen(["config.json", index, "m.gguf"]).companions).not.toContain(index);
  });

  it("opens a folder, or a file", () => {
    const set = chosen(["config.json", "model.safetensors"]);
    expect(entryOfSelection(set, "n")).toEqual({ layout: "folder", name: "n" });
    expect(entryOfSelection(chosen(["model.safetensors"]), "n")).toEqual({
      layout: "file",
      name: "model.safetensors",
    });
    for (const name of ["a.gguf", "gguf/a.gguf"]) {
      expect(entryOfSelection(chosen(["config.json", name]), "n")).toEqual({ layout: "file", name });
    }
  });

  it("lists files if none is a model", () => {
    expect(() => chosen(["a-q8.gguf", "b-q8.gguf"])).toThrow(
      /a-q8\.gguf, b-q8\.gguf; name one as "hf:o\/n:FILE"/,
    );
    expect(() => chosen(["pytorch_model.bin", "config.json"])).toThrow(
      "found pytorch_model.bin, config.json",
    );
    expect(() => chosen(["a.gguf"], "b.gguf")).toThrow("found a.gguf");
    expect(() => chosen([])).toThrow("found no file");
    const many = Array.from({ length: 12 }, (_, i) => `${i}.bin`);
    expect(() => chosen(many)).toThrow("7.bin and 4 more");
  });

  it("needs no name for the only stored model", () => {
    const stored = (names: readonly string[], asked?: string) =>
      selectStoredFiles("o/n", "store", names, asked).weights;
    expect(stored(["config.json", "b-q8.gguf"])).toEqual(["b-q8.gguf"]);
    expect(() => stored(["a-q8.gguf", "b-q8.gguf"])).toThrow("several");
    expect(stored(["a-q8.gguf", "b-q8.gguf"], "a-q8.gguf")).toEqual(["a-q8.gguf"]);
  });
});

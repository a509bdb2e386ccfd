import { describe, expect, it } from "vitest";
import type { HostPlatform } from "../src/host-platform.js";
import { ModelBytes } from "../src/model-bytes.js";
import { BlobFiles } from "../src/model-files.js";
import { openLoader } from "../src/open-loader.js";
import { StreamedModel } from "../src/open-model.js";

const EMPTY_MODULE = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0);

const entry = { layout: "file", name: "m.onnx" } as const;

/** An engine that estimates `weights` bytes, and a module whose list is empty; with the calls of the engine. */
function platform(weights: number) {
  const calls: string[] = [];
  const compile = () => WebAssembly.compile(EMPTY_MODULE);
  const module = { default: async () => undefined };
  const Loader = {
    open: async (
      kind: string,
      _name: string,
      _files: object,
      headersOnly?: boolean,
      pretokenizer?: string,
    ) => {
      calls.push([kind, headersOnly && "headers", pretokenizer].filter(Boolean).join(" "));
      return {
        estimate: () => Float64Array.of(8, weights, 0, 0, 0, 0, weights),
        free: () => calls.push("freed"),
      };
    },
  };
  const build = { glue: { ...module, Loader }, compile };
  const onnx = async () => ({ glue: { ...module, OnnxReader: class {} }, compile });
  return { calls, host: { build, onnx } as unknown as HostPlatform };
}

const bytes = () =>
  new ModelBytes(async () => new StreamedModel(entry, () => new BlobFiles(new Map()), "packing"));

describe("openLoader", () => {
  it("refuses an ONNX model that is too large before its weights are read", async () => {
    const { calls, host } = platform(2 ** 32 + 1);
    const loading = openLoader(host, entry, bytes(), { onProcessor: true });
    await expect(loading).rejects.toMatchObject({
      code: "out-of-memory",
      message: expect.stringMatching(/^m\.onnx: its weights need 4\.\d.*available; /),
    });
    expect(calls).toEqual(["tensors headers", "freed"]);
  });

  it("names how the tokenizer of a GGUF file splits text", async () => {
    const { calls, host } = platform(1);
    const gguf = { layout: "file", name: "m.gguf" } as const;
    await openLoader(host, gguf, bytes(), { pretokenizer: "llama-bpe" });
    await openLoader(host, gguf, bytes(), {});
    expect(calls).toEqual(["file llama-bpe", "file"]);
  });

  it("reads one on a GPU, whose memory is another, and headers of any", async () => {
    const { calls, host } = platform(2 ** 32 + 1);
    await openLoader(host, entry, bytes(), {});
    await openLoader(host, entry, bytes(), { headersOnly: true, onProcessor: true });
    expect(calls).toEqual(["tensors headers", "freed", "tensors", "tensors headers"]);
  });
});

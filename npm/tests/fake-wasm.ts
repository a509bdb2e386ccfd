/** A wasm module made of JavaScript, to test the protocol around it; the real one is tested in browsers and in Node. */

import { SetunError } from "../src/errors.js";
import type { WasmEvent, WasmGenerateOptions, WasmGeneration, WasmModule } from "../src/wasm.js";

/** What the fake did, for tests to look at. */
export interface Log {
  turns: number;
  freed: string[];
}

const EMPTY_MODULE = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0);

/** Wants `a.safetensors` in two ranges and an optional file; generates "0 1 2 …", two tokens a turn. */
export function fakeBuild(log: Log) {
  class Loader {
    #wants = [
      { file: "config.json", required: false },
      { file: "a.safetensors", start: 0, end: 8, required: true },
      { file: "a.safetensors", start: 8, end: 16, required: true },
    ];
    want = () => this.#wants[0];
    give(bytes: Uint8Array | undefined) {
      const want = this.#wants.shift();
      if (bytes === undefined || want?.end === undefined || bytes.length === 8) return;
      throw Object.assign(new Error(`${want.file}: too short`), { code: "truncated" });
    }
    finish = async () => model;
    free = () => void log.freed.push("loader");
  }

  const model = {
    info: { name: "fake" } as never,
    generate: (prompt: string, options: WasmGenerateOptions) => fakeGeneration(prompt, options, log),
    chat: () => {
      throw Object.assign(new Error("there is no chat template"), { code: "bad-option" });
    },
    tokenize: (text: string) => Uint32Array.from(text, (letter) => letter.codePointAt(0) ?? 0),
    detokenize: (ids: Uint32Array) => String.fromCodePoint(...ids),
    free: () => void log.freed.push("model"),
  };

  const glue: WasmModule = { default: async () => undefined, Loader };
  return { glue, compile: async () => new WebAssembly.Module(EMPTY_MODULE) };
}

function fakeGeneration(prompt: string, { maxTokens = 1000 }: WasmGenerateOptions, log: Log): WasmGeneration {
  let token = 0;
  let stopped = false;
  let over = false;
  const done = (): WasmEvent => ({
    type: "done",
    finishReason: stopped ? "aborted" : "length",
    usage: { promptTokens: prompt.length, generatedTokens: token },
    timings: { loadSeconds: 0, firstTokenSeconds: 0, tokensPerSecond: 0 },
    seed: 1,
    backend: "cpu",
    level: "scalar",
    model: "fake",
  });
  return {
    async next() {
      await new Promise((resolve) => setTimeout(resolve, 0));
      if (over) return undefined;
      if (prompt === "bad") throw new SetunError("context-full", "the prompt is too long");
      log.turns += 1;
      const events: WasmEvent[] = [];
      while (!stopped && token < maxTokens && events.length < 2) {
        events.push({ type: "text", text: `${token} `, token });
        token += 1;
      }
      over = stopped || token >= maxTokens;
      return over ? [...events, done()] : events;
    },
    stop: () => {
      stopped = true;
    },
    free: () => void log.freed.push("generation"),
  };
}

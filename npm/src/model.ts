/** A loaded model. */

import { type Generation, SessionGeneration } from "./generation.js";
import type { ChatMessage, GenerationInput } from "./messages.js";
import { checkMessages, checkText, engineOptions, type GenerateOptions } from "./options.js";
import type { Build } from "./pick-build.js";
import type { Session } from "./session.js";
import type { DeviceReport, SelfTest, WasmModelInfo } from "./wasm.js";

/** What is known of a model, and what runs it. */
export interface ModelInfo extends WasmModelInfo {
  /** The WebAssembly build in use. */
  readonly build: Build;
  /** Whether it runs in a worker. */
  readonly worker: boolean;
}

/**
 * A model, ready to run. It needs no network any more.
 *
 * After {@link Model.dispose} everything rejects with `disposed`.
 */
export class Model implements AsyncDisposable {
  readonly info: ModelInfo;
  readonly #session: Session;
  readonly #report: DeviceReport;

  /** @internal Models come from `load`. */
  constructor(session: Session, info: ModelInfo, report: DeviceReport) {
    this.#session = session;
    this.info = info;
    this.#report = report;
  }

  /** Why this device runs, and others do not. */
  deviceReport(): DeviceReport {
    return this.#report;
  }

  /**
   * Compares what the device computes with the definitions, on a small model of this one's kind. Generations under way
   * go on. A device that differs is no error, but `passed` says so.
   */
  async selfTest(): Promise<SelfTest> {
    return (await this.#session.ask({ type: "self-test" }, "self-tested")).result;
  }

  /**
   * Continues a text.
   *
   * @throws {SetunError} `bad-option` at once; everything else when the generation is read.
   */
  generate(prompt: string, options: GenerateOptions = {}): Generation {
    checkText("prompt", prompt);
    return this.#start({ kind: "prompt", prompt }, options);
  }

  /**
   * Answers a conversation, put into words by the model's own chat template.
   *
   * @throws {SetunError} `bad-option` at once; everything else when the generation is read.
   */
  chat(messages: readonly ChatMessage[], options: GenerateOptions = {}): Generation {
    checkMessages(messages);
    return this.#start({ kind: "chat", messages }, options);
  }

  /** The ids of a text's tokens, special ones included as the tokenizer says. */
  async tokenize(text: string): Promise<Uint32Array> {
    checkText("text", text);
    return (await this.#session.ask({ type: "tokenize", text }, "tokens")).ids;
  }

  /** The text of tokens. */
  async detokenize(ids: Iterable<number>): Promise<string> {
    return (await this.#session.ask({ type: "detokenize", ids: Uint32Array.from(ids) }, "text")).text;
  }

  /** Frees the model and ends its worker. Running generations reject with `disposed`. */
  async dispose(): Promise<void> {
    this.#session.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  #start(input: GenerationInput, options: GenerateOptions): Generation {
    const { session, build } = { session: this.#session, build: this.info.build };
    return new SessionGeneration({
      session,
      build,
      input,
      options: engineOptions(options),
      signal: options.signal,
    });
  }
}

/** Options of loading a model. */

import type { EngineLimits } from "./engine-limits.js";
import type { LoadProgress } from "./load-progress.js";
import type { LoadSource } from "./sources.js";

/** A device or an instruction level; `"wasm"` is another name of `"cpu"`. */
export type Backend = "auto" | "cpu" | "wasm" | "webgpu" | "relaxed" | "simd128" | "scalar";

/** Options of `load`. An unknown name or a value out of range rejects with `bad-option` before any work. */
export interface LoadOptions extends EngineLimits {
  /** Called at the begin of each phase of loading, and at most ten times a second within one. */
  onProgress?: (progress: LoadProgress) => void;
  /** Aborts loading, as in `fetch`: the promise rejects with `signal.reason`. */
  signal?: AbortSignal;
  /**
   * The device and instruction level that run the model.
   *
   * `"auto"` takes the GPU if it passes its self-test and is faster, else the CPU.
   * Any other value that cannot run here rejects with `backend-unavailable`; there is no silent fallback.
   *
   * @defaultValue `"auto"`
   */
  backend?: Backend;
  /**
   * Maximum number of threads, 1 to 64. More than one needs a worker and a cross-origin isolated page.
   *
   * @defaultValue The number of logical processors, at most 8.
   */
  threads?: number;
  /** Speculative decoding. */
  speculative?: {
    /**
     * A draft model: a smaller model with the same vocabulary, from any source that `load` takes.
     *
     * It proposes tokens for every generation whose `speculative.lookahead` is not 0, and changes no text.
     * Its weights and KV cache are added to the model's memory.
     * A draft with another vocabulary rejects with `bad-option`.
     *
     * @defaultValue No draft model.
     */
    draft?: LoadSource;
  };
  /**
   * Whether the model runs in a module worker. In Node, `true` rejects with `bad-option`.
   *
   * @defaultValue `true` in browsers, `false` in Node.
   */
  worker?: boolean;
  /**
   * Whether all tabs of this origin that load the same with the same options share one model: one of them runs it, and
   * when it is closed the next loads it and continues all texts, which do not change.
   *
   * It takes a URL, a Hub name or the story model, and needs a worker and Web Locks; otherwise it rejects with
   * `bad-option`. Limits and metrics are those of all tabs together. `dispose` ends the use of this tab alone.
   *
   * @defaultValue `false`
   */
  shared?: boolean;
  /**
   * Whether unfinished generations are kept in the tab's session storage, for {@link Model.resumable} after a reload.
   * Workers and Node refuse it with `bad-option`.
   *
   * @defaultValue `false`
   */
  resume?: boolean;
  /**
   * Whether downloads are stored in the browser, so that the next `load` needs no network.
   *
   * It applies to URLs and Hub names that a worker downloads. Files and bytes are never stored, and Node stores nothing.
   * `storage-full` if the browser has too little room.
   *
   * @defaultValue `true`
   */
  store?: boolean;
  /**
   * Whether a stored model is compared with its hashes before it is read, which reads it once more. Damaged files are
   * downloaded again. Without it other sizes are noticed at once, and other bytes where they make a load fail.
   *
   * In Node it compares a model that `setun models pull` has stored, and rejects with `bad-checkpoint`.
   *
   * @defaultValue `false`
   */
  verify?: boolean;
  /**
   * Whether the weights of stored models are shared with other sites, where the browser has Cross-Origin Storage
   * (`navigator.crossOriginStorage`): they are looked for there before they are downloaded, and left there alone
   * afterwards. Only files whose SHA-256 the Hub or a manifest states are. The browser may ask its user.
   *
   * Another site that knows the hash can find out that the file is there.
   *
   * @defaultValue `true`
   */
  crossOriginStorage?: boolean;
  /**
   * Concurrent requests of a stored download, 1 to 16.
   *
   * @defaultValue 4
   */
  connections?: number;
  /**
   * URL of a copy of this package's folders `dist` and `model`, such as `"/setun/"`.
   *
   * For bundlers that leave workers out, and for files on another origin, which must allow it by CORS.
   * A Content-Security-Policy then needs that origin in `script-src`, `connect-src` and `worker-src`, and `blob:` in
   * `worker-src`.
   * The copy must be of the same version. Node refuses the option with `bad-option`.
   *
   * @defaultValue The files beside this code.
   */
  assetsUrl?: string;
  /**
   * How the byte-level tokenizer of a GGUF file splits text, by a name of `tokenizer.ggml.pre`, such as `"llama-bpe"`,
   * in place of what the file says. Older files do not say it. Another name rejects with `bad-option`.
   *
   * @defaultValue What the file says, else `"default"`.
   */
  pretokenizer?: string;
  /** Access token of the Hub. It is sent to `endpoint` only. */
  token?: string;
  /**
   * URL of the Hub that serves names such as `hf:owner/name`.
   *
   * @defaultValue `"https://huggingface.co"`
   */
  endpoint?: string;
}

/** Options of `models.estimate`, with the same meaning as for `load`. */
export type EstimateOptions = Pick<
  LoadOptions,
  "signal" | "worker" | "store" | "token" | "endpoint" | "assetsUrl" | "headType"
>;

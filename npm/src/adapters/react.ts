/**
 * `setun/react`: hooks for a model that loads, and for a text that streams.
 *
 * `docs/adapters.md` has an example and the rules.
 *
 * @module setun/react
 */

import { useCallback, useEffect, useRef, useState } from "react";
import type { LoadProgress } from "../load-progress.js";
import type { Model } from "../model.js";
import type { LoadOptions } from "../options.js";
import type { ChatMessage, GenerateOptions, Generation, GenerationResult } from "./core.js";

/** Options of a load but for those that {@link useModel} sets. */
export type UseModelOptions = Omit<LoadOptions, "signal" | "onProgress">;

/** A model, or how far it is. */
export interface ModelState {
  /** `"idle"` without a source. */
  readonly status: "idle" | "loading" | "ready" | "error";
  /** The model once it is ready. */
  readonly model: Model | undefined;
  /** Progress while it loads. */
  readonly progress: LoadProgress | undefined;
  /** Why the load failed. */
  readonly error: unknown;
  /** Loads again. */
  readonly retry: () => void;
}

/** A text, or how far it is. */
export interface GenerationState {
  /** The text so far. */
  readonly text: string;
  /** What the model has thought so far; it is no part of the text. */
  readonly reasoning: string;
  /** Whether more may come. */
  readonly isStreaming: boolean;
  /** Finish reason, usage and calls of tools, once the text has ended. */
  readonly result: GenerationResult | undefined;
  /** Why the generation failed. */
  readonly error: unknown;
  /** Continues a text or answers a conversation, in place of the last text. A failure is `error`; it never rejects. */
  readonly generate: (
    prompt: string | readonly ChatMessage[],
    options?: GenerateOptions,
  ) => Promise<GenerationResult | undefined>;
  /** Ends the text where it is. */
  readonly stop: () => void;
}

type Loaded = Omit<ModelState, "retry">;
type Streamed = Omit<GenerationState, "generate" | "stop">;

const LOADING: Loaded = { status: "loading", model: undefined, progress: undefined, error: undefined };
const NOTHING = { source: undefined, attempt: -1, state: LOADING };
const NO_TEXT: Streamed = {
  text: "",
  reasoning: "",
  isStreaming: false,
  result: undefined,
  error: undefined,
};

/**
 * Loads a model, and disposes it when the component is unmounted or the source is another one. `null` loads nothing.
 *
 * A source that is an object must stay the same object between renders. `load` and `options` count when a load begins.
 *
 * @example
 * ```ts
 * const { model, status, progress, error, retry } = useModel(load, "hf:owner/name");
 * ```
 */
export function useModel<Source>(
  load: (source: Source, options: LoadOptions) => Promise<Model>,
  source: Source | null,
  options: UseModelOptions = {},
): ModelState {
  const [attempt, setAttempt] = useState(0);
  const [shown, setShown] = useState<{ source: unknown; attempt: number; state: Loaded }>(NOTHING);
  const latest = useRef({ load, options });
  useEffect(() => {
    latest.current = { load, options };
  });
  useEffect(() => {
    if (source === null) return;
    const begin = (own: LoadOptions) => latest.current.load(source, { ...latest.current.options, ...own });
    const show = (state: Partial<Loaded>) => setShown({ source, attempt, state: { ...LOADING, ...state } });
    const end = startLoad(begin, show);
    return () => {
      end();
      setShown(NOTHING);
    };
  }, [source, attempt]);
  const retry = useCallback(() => setAttempt((last) => last + 1), []);
  if (source === null) return { ...LOADING, status: "idle", retry };
  const isCurrent = shown.source === source && shown.attempt === attempt;
  return { ...(isCurrent ? shown.state : LOADING), retry };
}

/** Starts a load; returns what ends it and disposes its model. */
function startLoad(
  begin: (own: LoadOptions) => Promise<Model>,
  show: (state: Partial<Loaded>) => void,
): () => void {
  const controller = new AbortController();
  const { signal } = controller;
  let model: Model | undefined;
  const run = async () => {
    await Promise.resolve(); // Strict Mode ends its first effect before this goes on
    if (signal.aborted) return;
    try {
      model = await begin({ signal, onProgress: (progress) => signal.aborted || show({ progress }) });
      if (signal.aborted) await model.dispose();
      else show({ status: "ready", model });
    } catch (error) {
      if (!signal.aborted) show({ status: "error", error });
    }
  };
  void run();
  return () => {
    controller.abort();
    void model?.dispose();
  };
}

/**
 * One text at a time of a model, which ends when the component is unmounted or the model is another one.
 *
 * @example
 * ```ts
 * const { text, isStreaming, result, error, generate, stop } = useGeneration(model);
 * ```
 */
export function useGeneration(model: Pick<Model, "generate" | "chat"> | undefined): GenerationState {
  const [shown, setShown] = useState<{ model: unknown; state: Streamed }>({ model, state: NO_TEXT });
  const running = useRef<Generation | undefined>(undefined);
  const stop = useCallback(() => running.current?.stop(), []);
  useEffect(() => (model === undefined ? undefined : stop), [model, stop]);
  const generate = useCallback<GenerationState["generate"]>(
    async (prompt, options = {}) => {
      stop();
      running.current = undefined;
      let generation: Generation | undefined;
      let [text, reasoning] = ["", ""];
      const show = (state: Partial<Streamed>) => {
        if (running.current === generation)
          setShown({ model, state: { ...NO_TEXT, text, reasoning, ...state } });
      };
      try {
        if (model === undefined) throw new TypeError("there is no model yet: wait until its status is ready");
        generation =
          typeof prompt === "string" ? model.generate(prompt, options) : model.chat(prompt, options);
        running.current = generation;
        show({ isStreaming: true });
        for await (const delta of generation) {
          text += delta.text;
          reasoning += delta.reasoning ?? "";
          show({ isStreaming: true });
        }
        const result = await generation.result;
        show({ result });
        return result;
      } catch (error) {
        show({ error });
        return undefined;
      }
    },
    [model, stop],
  );
  return { ...(shown.model === model ? shown.state : NO_TEXT), generate, stop };
}

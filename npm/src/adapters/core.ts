/** The part of a model that adapters call, and the choice among several models. */

import type { Model } from "../model.js";
import type { ChatMessage } from "../protocol.js";

export type { EmbedOptions } from "../embeddings.js";
export type { GenerateOptions } from "../generate-options.js";
export type { Generation, GenerationResult } from "../generation.js";
export type { ChatMessage } from "../protocol.js";
export type { Tool, ToolCall, ToolCallDelta, ToolChoice } from "../tools.js";
export type { TextDelta, TokenLogprob } from "../wasm.js";

/** The part of a model that adapters call. */
export type AdapterModel = Pick<
  Model,
  "info" | "generate" | "chat" | "generateMany" | "countTokens" | "embedMany"
>;

/** One model, or several by name. */
export type Models = AdapterModel | Readonly<Record<string, AdapterModel>>;

/** Models by name; a lone model has its own name. */
export function byName(models: Models): ReadonlyMap<string, AdapterModel> {
  const isOne = typeof models.chat === "function";
  return isOne
    ? new Map([[(models as AdapterModel).info.name, models as AdapterModel]])
    : new Map(Object.entries(models as Record<string, AdapterModel>));
}

/**
 * The model of a name, with the name; without one, the only model.
 *
 * @throws what `refuse` makes of the name, for a model that is not there.
 */
export function found(
  models: ReadonlyMap<string, AdapterModel>,
  name: string | undefined,
  refuse: (name: string, known: string) => Error,
): readonly [string, AdapterModel] {
  const known = [...models.keys()];
  const id = name ?? (known.length === 1 ? known[0] : undefined) ?? "";
  const model = models.get(id);
  if (model === undefined) throw refuse(id, known.join(", "));
  return [id, model];
}

/** Fields without those that are `undefined`. */
export function defined<Fields extends object>(
  fields: Fields,
): { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Fields;
}

/** The text that a model without a chat template continues: that of a lone message of the user. */
export function textToContinue(model: AdapterModel, messages: readonly ChatMessage[]): string | undefined {
  const [only] = messages;
  if (model.info.hasChatTemplate || messages.length !== 1 || only?.role !== "user") return undefined;
  return typeof only.content === "string" ? only.content : undefined;
}

/** The code of an error of setun. */
export function codeOf(thrown: unknown): string | undefined {
  const isCoded = thrown instanceof Error && thrown.name === "SetunError" && "code" in thrown;
  return isCoded && typeof thrown.code === "string" ? thrown.code : undefined;
}

/** Whether the input of a call has come to its end: that of an answer which was cut off may have not. */
export function isWhole(input: string): boolean {
  try {
    JSON.parse(input);
    return true;
  } catch {
    return false;
  }
}

/** A random name such as `chatcmpl-…`. */
export function newId(prefix: string): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return `${prefix}${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** A controller that is aborted when one of some signals is. */
export function following(...signals: readonly (AbortSignal | null | undefined)[]): AbortController {
  const controller = new AbortController();
  for (const signal of signals) {
    const follow = () => controller.abort(signal?.reason);
    if (signal?.aborted) follow();
    else signal?.addEventListener("abort", follow, { once: true, signal: controller.signal });
  }
  return controller;
}

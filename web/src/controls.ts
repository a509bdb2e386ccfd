/** Values of the controls. An empty field means the model's default. */

import type { Backend, GenerateOptions, LoadOptions } from "setun";
import { ALTERNATIVES } from "./alternatives.js";
import { element } from "./elements.js";

/** A requested generation. */
export interface Text {
  readonly prompt: string;
  /** Whether the prompt is a chat message, if the model has a chat template. */
  readonly asChat: boolean;
  readonly options: GenerateOptions;
}

/**
 * One or two generations; the second prompt defaults to the first. Two that are to be compared have one seed, unless
 * the second has its own.
 */
export function readTexts(areCompared: boolean): Text[] {
  const asChat = isChecked("use-template");
  const prompt = element("prompt", HTMLTextAreaElement).value;
  const first = { prompt, asChat, options: readOptions("seed") };
  if (!isChecked("two")) return [first];
  const second = { ...first, prompt: element("prompt-2", HTMLTextAreaElement).value || prompt };
  if (!areCompared) return [first, { ...second, options: readOptions("seed-2") }];
  const shared = first.options.seed ?? crypto.getRandomValues(new Uint32Array(1))[0] ?? 0;
  const options = { ...first.options, seed: shared };
  return [
    { ...first, options },
    { ...second, options: { ...options, seed: seed("seed-2") ?? shared } },
  ];
}

/** Options of a fork. */
export function readFork(): GenerateOptions {
  return readOptions("seed");
}

/** Options of an answer in a chat. A seed that is given is that of the first version; the next has the next one. */
export function readAnswer(version: number): GenerateOptions {
  const first = seed("seed");
  return given({
    ...sampling(),
    seed: first === undefined ? undefined : simplest(BigInt.asUintN(64, BigInt(first) + BigInt(version))),
  });
}

/** Sampling options and log-probabilities. */
function readOptions(seedField: string): GenerateOptions {
  return given({
    ...sampling(),
    seed: seed(seedField),
    ...(isChecked("probabilities") && { logprobs: true, topLogprobs: ALTERNATIVES }),
  });
}

function sampling() {
  return {
    temperature: number("temperature"),
    topK: number("top-k"),
    topP: number("top-p"),
    maxTokens: number("max-tokens"),
    speculative: given({ lookahead: number("lookahead") }),
  };
}

/** Backend and threads. */
export function readBackend(): Pick<LoadOptions, "backend" | "threads"> {
  const backend = element("backend", HTMLSelectElement).value as Backend;
  return given({ backend, threads: number("threads") });
}

function isChecked(id: string): boolean {
  return element(id, HTMLInputElement).checked;
}

function number(id: string): number | undefined {
  const { value } = element(id, HTMLInputElement);
  return value === "" ? undefined : Number(value);
}

/** Seeds have 64 bits, more than a number can hold. */
function seed(field: string): number | bigint | undefined {
  const text = element(field, HTMLInputElement).value.trim();
  if (text === "") return undefined;
  return simplest(BigInt(text));
}

function simplest(value: bigint): number | bigint {
  return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value;
}

type Given<Values> = { [Name in keyof Values]?: Exclude<Values[Name], undefined> };

/** The defined values. */
function given<Values extends object>(values: Values): Given<Values> {
  return Object.fromEntries(
    Object.entries(values).filter(([, value]) => value !== undefined),
  ) as Given<Values>;
}

/** What the user asks for. An empty field leaves the choice to the model. */

import type { GenerateOptions, LoadOptions } from "setun";
import { element } from "./elements.js";

/** Prompt and sampling. */
export function readGeneration(): { prompt: string; options: GenerateOptions } {
  const options = {
    temperature: number("temperature"),
    topK: number("top-k"),
    topP: number("top-p"),
    maxTokens: number("max-tokens"),
    seed: seed(),
  };
  return { prompt: element("prompt", HTMLTextAreaElement).value, options: given(options) };
}

/** Backend and threads. */
export function readBackend(): Pick<LoadOptions, "backend" | "threads"> {
  const backend = element("backend", HTMLSelectElement).value;
  return given({ backend, threads: number("threads") });
}

function number(id: string): number | undefined {
  const { value } = element(id, HTMLInputElement);
  return value === "" ? undefined : Number(value);
}

/** Seeds have 64 bits, more than a number holds. */
function seed(): number | bigint | undefined {
  const text = element("seed", HTMLInputElement).value.trim();
  if (text === "") return undefined;
  const value = BigInt(text);
  return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value;
}

type Given<Values> = { [Name in keyof Values]?: Exclude<Values[Name], undefined> };

/** The values that are there. */
function given<Values extends object>(values: Values): Given<Values> {
  return Object.fromEntries(
    Object.entries(values).filter(([, value]) => value !== undefined),
  ) as Given<Values>;
}

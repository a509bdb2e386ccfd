/** Tools: functions that a model may call. */

import { SetunError } from "./errors.js";
import type { GrammarSource, RequestOptions } from "./response-format.js";
import type { WasmGenerateOptions, WasmModel } from "./wasm.js";

/** A function that a model may call, as in the OpenAI API. */
export interface Tool {
  /** Discriminator. */
  readonly type: "function";
  /** The function. */
  readonly function: {
    /** Its name: 1 to 128 of the characters `A-Z a-z 0-9 _ - . : /`. */
    readonly name: string;
    /** What it does, for the model. */
    readonly description?: string | undefined;
    /** JSON Schema of its arguments, an object. Without one the function has no arguments. */
    readonly parameters?: object | undefined;
    /**
     * Whether `parameters` that cannot be applied as a whole are refused. Otherwise arguments are free in the parts that
     * cannot be, which `warnings` of the result tell. Default: false.
     */
    readonly strict?: boolean | null | undefined;
  };
}

/**
 * Whether a model calls tools. `"auto"`: it decides itself. `"none"`: it is offered none. `"required"`: it has to call one,
 * or the named one.
 */
export type ToolChoice = "auto" | "none" | "required" | NamedToolChoice;

/** The tool that a model has to call. */
export interface NamedToolChoice {
  /** Discriminator. */
  readonly type: "function";
  /** The function. */
  readonly function: {
    /** Its name. */
    readonly name: string;
  };
}

/** A call of a tool, as in the OpenAI API. */
export interface ToolCall {
  /** Nine letters and digits, the same for the same request. */
  readonly id: string;
  /** Discriminator. */
  readonly type: "function";
  /** The function. */
  readonly function: {
    /** Its name. */
    readonly name: string;
    /** The arguments as JSON text. */
    readonly arguments: string;
  };
}

/** A piece of a call. */
export interface ToolCallDelta {
  /** Place of the call among those of the answer, from 0. */
  readonly index: number;
  /** With the first piece of a call. */
  readonly id?: string;
  /** With the first piece of a call. */
  readonly name?: string;
  /** What comes next of the arguments' JSON text. */
  readonly arguments?: string;
}

/** Tools of a request on their way to the engine, as JSON text. */
export interface SentTools {
  readonly tools: string;
  readonly toolChoice: string;
  readonly parallelToolCalls: boolean;
}

/** The options that concern tools. */
interface ToolOptions {
  readonly tools?: readonly Tool[] | undefined;
  readonly toolChoice?: ToolChoice | undefined;
  readonly parallelToolCalls?: boolean | undefined;
}

export function isTool(value: unknown): boolean {
  const { type, function: given } = (value ?? {}) as Partial<Tool>;
  if (type !== "function" || !isObject(given)) return false;
  const { name, description, parameters, strict } = given;
  return (
    typeof name === "string" &&
    (description === undefined || typeof description === "string") &&
    (strict === undefined || strict === null || typeof strict === "boolean") &&
    (parameters === undefined || isObject(parameters))
  );
}

export function isToolChoice(value: unknown): boolean {
  if (value === "auto" || value === "none" || value === "required") return true;
  const { type, function: given } = (value ?? {}) as Partial<NamedToolChoice>;
  return type === "function" && isObject(given) && typeof given.name === "string";
}

/**
 * The tools of a request; `undefined` if the model is offered none.
 *
 * @throws {SetunError} `bad-option` for a choice without its tool, or tools that are no JSON.
 */
export function sentTools({
  tools = [],
  toolChoice = "auto",
  parallelToolCalls = true,
}: ToolOptions): SentTools | undefined {
  const name = typeof toolChoice === "object" ? toolChoice.function.name : undefined;
  const isMissing =
    name === undefined ? tools.length === 0 : !tools.some((tool) => tool.function.name === name);
  if (isMissing && toolChoice !== "auto" && toolChoice !== "none") {
    throw new SetunError("bad-option", `toolChoice: ${name ?? "required"} is no tool of the request`);
  }
  if (toolChoice === "none" || tools.length === 0) return undefined;
  try {
    return { tools: JSON.stringify(tools), toolChoice: JSON.stringify(toolChoice), parallelToolCalls };
  } catch {
    throw new SetunError(
      "bad-option",
      "tools: expected values that JSON has, found a cycle or too deep an object",
    );
  }
}

/** The grammar of the calls, in the format that the model writes them in, and of answers without calls. */
export function toolGrammar(sent: SentTools, format: string, text?: GrammarSource): GrammarSource {
  const { tools, toolChoice, parallelToolCalls } = sent;
  const answer = text ? `,"text":${JSON.stringify({ kind: text.kind, text: text.text })}` : "";
  const rest = `"format":${JSON.stringify(format)},"parallelToolCalls":${parallelToolCalls}${answer}`;
  return { kind: "tools", text: `{"tools":${tools},"toolChoice":${toolChoice},${rest}}` };
}

/** Options without a grammar, and with the tools as text. */
export function withToolText(
  { grammar: _, tools, ...rest }: RequestOptions,
  { toolFormat }: Pick<WasmModel, "toolFormat">,
): WasmGenerateOptions {
  return tools ? { ...rest, tools: toolGrammar(tools, toolFormat).text } : rest;
}

/** Adds pieces to the calls of an answer. */
export function joinCalls(calls: ToolCall[], pieces: readonly ToolCallDelta[]): void {
  for (const { index, id, name, arguments: more = "" } of pieces) {
    const known = calls[index] ?? { id: id ?? "", function: { name: name ?? "", arguments: "" } };
    const { name: whole, arguments: before } = known.function;
    calls[index] = { id: known.id, type: "function", function: { name: whole, arguments: before + more } };
  }
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

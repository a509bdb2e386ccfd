/** Response formats of structured output, and the grammars that they compile to. */

import type { SentTools } from "./tools.js";
import type { WasmGenerateOptions } from "./wasm.js";

/**
 * The format that a generated text follows, from its first token to its last.
 *
 * Types have the names of the OpenAI API. The parser is fetched with the first generation that needs it.
 * JSON is complete within `maxTokens` if its schema has a text that is short enough; a text that is cut off is `unfinished`.
 * `docs/structured-output.md` lists what schemas may contain.
 *
 * @example
 * ```ts
 * const schema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
 * const text = await model.generate("Alice is", { responseFormat: { type: "json_schema", schema } }).text();
 * ```
 */
export type ResponseFormat = TextFormat | JsonObjectFormat | JsonSchemaFormat | GrammarFormat | ChoiceFormat;

/** Any text: no constraint. */
export interface TextFormat {
  /** Discriminator. */
  readonly type: "text";
}

/** Any JSON object, on one line. */
export interface JsonObjectFormat {
  /** Discriminator. */
  readonly type: "json_object";
}

/**
 * A JSON value that is valid under a schema, on one line: the only white space is a space after a comma or a colon.
 * The schema's `"x-guidance": { "whitespace_flexible": true }` allows line breaks and indentation, `false` no white space.
 */
export interface JsonSchemaFormat {
  /** Discriminator. */
  readonly type: "json_schema";
  /** The JSON Schema, as an object or as JSON text. Objects have no properties beside those that it lists. */
  readonly schema: object | string;
  /** Allows other properties wherever `additionalProperties` is absent. Default: `false`. */
  readonly openObjects?: boolean;
}

/** A text that a grammar accepts as a whole. */
export interface GrammarFormat {
  /** Discriminator. */
  readonly type: "grammar";
  /**
   * Notation of the definition: `"regex"` as in Rust's crate `regex`; `"lark"` as in llguidance, with the rule `start`;
   * `"gbnf"` as in llama.cpp, with the rule `root`.
   */
  readonly syntax: "regex" | "lark" | "gbnf";
  /** The regular expression or the grammar. */
  readonly definition: string;
}

/** One of several texts. */
export interface ChoiceFormat {
  /** Discriminator. */
  readonly type: "choice";
  /** The texts, at least one. */
  readonly choices: readonly string[];
}

/** Names of grammars in the grammar module: `crates/setun-grammar-wasm`. */
export type GrammarKind = "json_object" | "json_schema" | "choice" | "tools" | GrammarFormat["syntax"];

/** A grammar before it is compiled. Schemas and choices are JSON text. */
export interface GrammarSource {
  readonly kind: GrammarKind;
  readonly text: string;
}

/** Options of a generation on their way to the engine, before the grammar is compiled. */
export type RequestOptions = Omit<WasmGenerateOptions, "grammar" | "tools"> & {
  readonly grammar?: GrammarSource;
  readonly tools?: SentTools;
};

/** The accepted values in words. */
export const RESPONSE_FORMATS =
  '{type: "text"}, {type: "json_object"}, {type: "json_schema", schema, openObjects?}, ' +
  '{type: "grammar", syntax: "regex", "lark" or "gbnf", definition} or {type: "choice", choices}';

const SYNTAXES: readonly unknown[] = ["regex", "lark", "gbnf"] satisfies GrammarFormat["syntax"][];

/** The grammar of a response format: `null` for any text, `undefined` for a value that is no format. */
export function grammarSource(format: unknown): GrammarSource | null | undefined {
  if (typeof format !== "object" || format === null) return undefined;
  const { type, ...given } = format as Record<string, unknown>;
  const fields = Object.entries(given).filter(([, value]) => value !== undefined);
  const { schema, openObjects, syntax, definition, choices, ...others } = Object.fromEntries(fields);
  if (Object.keys(others).length > 0) return undefined;
  const count = fields.length;
  if (type === "text") return count === 0 ? null : undefined;
  if (type === "json_object") return count === 0 ? { kind: type, text: "" } : undefined;
  if (type === "json_schema" && count === (openObjects === undefined ? 1 : 2)) {
    if (openObjects !== undefined && typeof openObjects !== "boolean") return undefined;
    const text = asString(schema) ?? asJson(schema);
    return withText(type, openObjects && text !== undefined ? withOpenObjects(text) : text);
  }
  if (type === "choice" && count === 1)
    return withText(type, areStrings(choices) ? asJson(choices) : undefined);
  if (type !== "grammar" || count !== 2 || !SYNTAXES.includes(syntax)) return undefined;
  return withText(syntax as GrammarFormat["syntax"], asString(definition));
}

function withText(kind: GrammarKind, text: string | undefined): GrammarSource | undefined {
  return text === undefined ? undefined : { kind, text };
}

/** The schema with the option in its `x-guidance`. A text that is no JSON object is refused where it is compiled. */
function withOpenObjects(text: string): string {
  try {
    const schema = JSON.parse(text.replace(/^\uFEFF/, "")); // a byte order mark
    if (typeof schema !== "object" || schema === null || Array.isArray(schema)) return text;
    return JSON.stringify({ ...schema, "x-guidance": { ...schema["x-guidance"], open_objects: true } });
  } catch {
    return text;
  }
}

function asString(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function areStrings(value: unknown): boolean {
  return Array.isArray(value) && value.every((choice) => typeof choice === "string");
}

/** JSON text of an object; `undefined` where there is none, such as for a cyclic one. */
function asJson(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

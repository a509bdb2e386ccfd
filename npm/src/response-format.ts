/** The form that a text is to have. */

import type { WasmGenerateOptions } from "./wasm.js";

/**
 * The form of a text, from its first token to its last: one of these. The module that compiles forms is fetched with the
 * first; `docs/structured-output.md` says what each may hold.
 */
export type ResponseFormat =
  | {
      /** A JSON value that is valid under this schema, given as an object or as its text. */
      readonly jsonSchema: object | string;
    }
  | {
      /** Any JSON object. */
      readonly json: true;
    }
  | {
      /** A text that the regular expression matches as a whole, in the syntax of Rust's crate `regex`. */
      readonly regex: string;
    }
  | {
      /** One of these texts. */
      readonly choices: readonly string[];
    }
  | {
      /** A grammar in llguidance's variant of Lark, whose first rule is `start`. */
      readonly lark: string;
    }
  | {
      /** A grammar in the notation of llama.cpp, whose first rule is `root`. */
      readonly gbnf: string;
    };

/** What kind of form a {@link ResponseFormat} is: its one name. */
export type GrammarKind = ResponseFormat extends infer Each
  ? Each extends object
    ? keyof Each
    : never
  : never;

/** A form on its way to where it is compiled: of a schema, and of choices, the JSON. */
export interface GrammarSource {
  readonly kind: GrammarKind;
  readonly text: string;
}

/** Options of a generation on their way to the engine, whose form is yet to be compiled. */
export type RequestOptions = Omit<WasmGenerateOptions, "form"> & { readonly form?: GrammarSource };

const asText = (value: unknown) => (typeof value === "string" ? value : undefined);

/** How each kind is written; `undefined` for what is none of it. */
const WRITTEN: { readonly [Kind in GrammarKind]: (value: unknown) => string | undefined } = {
  jsonSchema: (value) => asText(value) ?? asJson(value),
  json: (value) => (value === true ? "" : undefined),
  regex: asText,
  choices: (value) =>
    Array.isArray(value) && value.every((choice) => typeof choice === "string") ? asJson(value) : undefined,
  lark: asText,
  gbnf: asText,
};

/** What a form is, in words. */
export const RESPONSE_FORMATS =
  "one of {jsonSchema}, an object or a text; {json: true}; {regex}, {lark} and {gbnf}, texts; {choices}, an array of texts";

/** A form in writing; `undefined` for what is none. */
export function grammarSource(form: unknown): GrammarSource | undefined {
  if (typeof form !== "object" || form === null) return undefined;
  const given = Object.entries(form).filter(([, value]) => value !== undefined);
  const [kind, value] = given.length === 1 ? (given[0] as [string, unknown]) : ["", undefined];
  if (!isKind(kind)) return undefined;
  const text = WRITTEN[kind](value);
  return text === undefined ? undefined : { kind, text };
}

function isKind(name: string): name is GrammarKind {
  return Object.hasOwn(WRITTEN, name);
}

/** What has no JSON, such as an object in itself, is no schema. */
function asJson(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

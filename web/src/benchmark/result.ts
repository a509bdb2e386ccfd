/** A benchmark's result, and its form in a link. */

/** Medians of a benchmark, and what ran. */
export interface BenchmarkResult {
  readonly model: string;
  readonly build: string;
  readonly backend: string;
  readonly level: string;
  readonly threads: number;
  readonly promptTokens: number;
  readonly tokens: number;
  /** Tokens of the prompt in a second, until the first token. */
  readonly prefill: number;
  /** Tokens in a second after the first one. */
  readonly decode: number;
  readonly browser: string;
  readonly cores: number;
}

const TEXTS = ["model", "build", "backend", "level", "browser"] as const;
const NUMBERS = ["threads", "promptTokens", "tokens", "prefill", "decode", "cores"] as const;

/** Characters of a text in a link. */
const MAX_TEXT = 120;

/** A result as part of a link. */
export function toFragment(result: BenchmarkResult): string {
  const bytes = new TextEncoder().encode(JSON.stringify(result));
  const text = btoa(String.fromCharCode(...bytes));
  return text.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** The result of a link; `undefined` if it holds none. */
export function fromFragment(fragment: string): BenchmarkResult | undefined {
  try {
    const bytes = atob(fragment.replaceAll("-", "+").replaceAll("_", "/"));
    const text = new TextDecoder().decode(Uint8Array.from(bytes, (byte) => byte.charCodeAt(0)));
    const given: unknown = JSON.parse(text);
    return isResult(given) ? given : undefined;
  } catch {
    return undefined;
  }
}

function isResult(given: unknown): given is BenchmarkResult {
  if (typeof given !== "object" || given === null) return false;
  const values = given as Record<string, unknown>;
  const isText = (value: unknown) => typeof value === "string" && value.length <= MAX_TEXT;
  const isNumber = (value: unknown) => typeof value === "number" && Number.isFinite(value) && value >= 0;
  return TEXTS.every((name) => isText(values[name])) && NUMBERS.every((name) => isNumber(values[name]));
}

/** The middle one. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

/** Name and version of a browser. */
export function browserName(agent: string): string {
  const found = /(Firefox|Edg|OPR|Chrome)\/[\d]+/.exec(agent) ?? /(Version)\/[\d.]+(?=.*Safari)/.exec(agent);
  const name = found?.[0].replace("Version", "Safari").replace("Edg", "Edge").replace("OPR", "Opera");
  return name?.replace("/", " ") ?? "unknown browser";
}

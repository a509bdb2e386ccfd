/** Tokens in the chunks of the server's answers. */

import type { TextDelta } from "setun";

/** Names of tokens that are no text: bytes, parts of a letter, and special tokens such as that of the end. */
const NO_TEXT = /^bytes:|\uFFFD|^<[^\s<>]+>$/;

/** A token with its probability, as chats have it. */
interface NamedToken {
  readonly token: string;
  readonly logprob: number;
}

/** A chunk of a chat or of a completion. */
export interface Chunk {
  readonly choices: readonly {
    readonly finish_reason: string | null;
    readonly text?: string;
    readonly delta?: { readonly content?: string; readonly reasoning_content?: string };
    readonly logprobs: {
      readonly content?: readonly (NamedToken & { readonly top_logprobs: readonly NamedToken[] })[];
      readonly tokens?: readonly string[];
      readonly token_logprobs?: readonly number[];
      readonly top_logprobs?: readonly (Record<string, number> | null)[];
    } | null;
  }[];
  readonly usage?: { readonly completion_tokens: number } | null;
}

/** Numbers for tokens, which these answers name by their texts. */
export class TokenNames {
  readonly #numbers = new Map<string, number>();
  readonly #names: string[] = [];

  number(name: string): number {
    const known = this.#numbers.get(name);
    if (known !== undefined) return known;
    this.#numbers.set(name, this.#names.length);
    return this.#names.push(name) - 1;
  }

  name(token: number): string {
    return this.#names[token] ?? "";
  }
}

/** The token of a chunk, if it has one. */
export function stepOf({ choices: [choice] }: Chunk, names: TokenNames): TextDelta | undefined {
  if (choice === undefined) return undefined;
  const { content = "", reasoning_content: reasoning } = choice.delta ?? {};
  if (reasoning !== undefined) return { text: "", reasoning, token: names.number(reasoning) };
  const text = choice.text ?? content;
  const [named] = namedTokens(choice.logprobs);
  if (named === undefined) return text === "" ? undefined : { text, token: names.number(text) };
  const topLogprobs = named.top.map(({ token, logprob }) => ({
    token: names.number(token),
    text: token,
    logprob,
  }));
  return { text, token: names.number(named.token), logprob: named.logprob, topLogprobs };
}

/** The tokens up to a place, and another one there, if it is known and its name is its text. */
export function branchAt(steps: readonly TextDelta[], at: number, token: number): TextDelta[] | undefined {
  const step = steps[at];
  const other = step?.topLogprobs?.find((each) => each.token === token);
  if (step === undefined || other === undefined || token === step.token || NO_TEXT.test(other.text))
    return undefined;
  return [...steps.slice(0, at), { ...step, ...other }];
}

type Logprobs = Chunk["choices"][number]["logprobs"];

function namedTokens(logprobs: Logprobs): (NamedToken & { readonly top: readonly NamedToken[] })[] {
  if (!logprobs) return [];
  const { content, tokens = [], token_logprobs = [], top_logprobs = [] } = logprobs;
  if (content) return content.map(({ top_logprobs: top, ...token }) => ({ ...token, top }));
  return tokens.map((token, at) => {
    const top = Object.entries(top_logprobs[at] ?? {}).map(([token, logprob]) => ({ token, logprob }));
    return { token, logprob: token_logprobs[at] ?? 0, top: top.sort((a, b) => b.logprob - a.logprob) };
  });
}

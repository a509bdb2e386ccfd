/** Tokens that were likely at a position of a text. */

import type { TextDelta } from "setun";

/** Number of alternatives requested with each token. */
export const ALTERNATIVES = 5;

/** An alternative token. */
export interface Alternative {
  readonly token: number;
  /** Its probability, if it was requested. */
  readonly share: number | undefined;
}

/** The token at a position and its alternatives, the most likely first. */
export function alternativesAt(steps: readonly TextDelta[], place: number): Alternative[] {
  const step = steps[place];
  if (step === undefined) return [];
  const likeliest = step.topLogprobs ?? [];
  const isAmong = likeliest.some(({ token }) => token === step.token);
  return [...likeliest, ...(isAmong ? [] : [step])].map(({ token, logprob }) => ({
    token,
    share: logprob === undefined ? undefined : Math.exp(logprob),
  }));
}

/** Text of a token with visible spaces and line breaks. */
export function visible(text: string): string {
  return text === "" ? "(nothing)" : text.replace(/^ | $/g, "·").replace(/\n/g, "↵");
}

/** A probability as a percentage. */
export function percent(share: number): string {
  return share < 0.001 ? "< 0.1 %" : `${(100 * share).toFixed(1)} %`;
}

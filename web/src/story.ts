/** A text as it is written: what it began with, and what came of it. */

import type { Model, TextDelta } from "setun";
import type { Choice } from "./current-model.js";

/** Likeliest tokens that are asked for in the place of each. */
export const ALTERNATIVES = 5;

/** What a column shows. */
export interface Story {
  /** What is said above it. */
  readonly caption: string;
  /** The model that writes it: tokens are of its vocabulary. */
  readonly choice: Choice;
  /** The prompt in words. */
  readonly echo: string;
  /** The prompt in tokens. */
  readonly start: readonly number[];
  /** Its tokens so far. Of a fork, the first ones are those of the text that it was forked from. */
  readonly steps: TextDelta[];
  /** How many tokens of a fork are not its own; the last of them was chosen. */
  readonly kept: number;
}

/** What a token might have been. */
export interface Alternative {
  readonly token: number;
  /** Its probability, if it was asked for. */
  readonly share: number | undefined;
}

/** What stands at a place, and what else might: the likeliest first. */
export function alternativesAt(story: Story, place: number): Alternative[] {
  const step = story.steps[place];
  if (step === undefined) return [];
  const likeliest = step.topLogprobs ?? [];
  const isAmong = likeliest.some(({ token }) => token === step.token);
  return [...likeliest, ...(isAmong ? [] : [step])].map(({ token, logprob }) => ({
    token,
    share: logprob === undefined ? undefined : Math.exp(logprob),
  }));
}

/** The story that has another token, or the same, at a place, and goes on from there. */
export async function forked(model: Model, story: Story, place: number, token: number): Promise<Story> {
  const steps = story.steps.slice(0, place);
  const there = story.steps[place];
  if (there?.token === token) {
    const caption = `From ${quoted(there.text)} on`;
    return { ...story, caption, steps: [...steps, there], kept: place + 1 };
  }
  const text = await textOf(model, story, place, token);
  const logprob = there?.topLogprobs?.find((likely) => likely.token === token)?.logprob;
  const chosen = { ...there, token, text, ...(logprob !== undefined && { logprob }) };
  const caption = `${quoted(text)} instead of ${quoted(there?.text ?? "")}`;
  return { ...story, caption, steps: [...steps, chosen], kept: place + 1 };
}

/** What a token says at a place: detokenizers drop the space of a text's first word, so another comes before it. */
export async function textOf(model: Model, story: Story, place: number, token: number): Promise<string> {
  const there = story.steps[place];
  if (there?.token === token && there.text !== "") return there.text;
  const before = [...story.start, ...story.steps.slice(0, place).map((step) => step.token)].slice(-4);
  const [all, rest] = await Promise.all([model.detokenize([...before, token]), model.detokenize(before)]);
  // What was half a character before may be a whole one now.
  const length = rest.replace(/\uFFFD+$/, "").length;
  return all.slice(length);
}

/** A token's text where spaces and line breaks are to be seen. */
export function visible(text: string): string {
  return text === "" ? "(nothing)" : text.replace(/^ | $/g, "·").replace(/\n/g, "↵");
}

function quoted(text: string): string {
  return text.trim() === "" ? visible(text) : `“${text.trim()}”`;
}

/** A probability in words. */
export function percent(share: number): string {
  return share < 0.001 ? "< 0.1 %" : `${(100 * share).toFixed(1)} %`;
}

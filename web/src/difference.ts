/** First difference of two texts of one prompt. */

import { percent, visible } from "./alternatives.js";
import type { Column } from "./column.js";
import { sameModel } from "./current-model.js";
import { element } from "./elements.js";
import type { Story } from "./story.js";

/** The first difference: the places of its tokens, one of which may be absent at the end of a text. */
export interface Difference {
  readonly places: readonly [number, number] | undefined;
  readonly words: string;
}

/** What is compared of a text. */
export type Compared = Pick<Story, "choice" | "echo" | "steps">;

/** Marks the first difference of two columns, and says it. */
export function showDifference([first, second]: readonly [Column, Column]): void {
  const [one, other] = [first.story, second.story];
  const isWriting = [first, second].some(({ output }) => output.ariaBusy === "true");
  const found = one && other && differenceOf(one, other, isWriting);
  const place = element("difference", HTMLElement);
  first.markDifference(found?.places?.[0]);
  second.markDifference(found?.places?.[1]);
  place.hidden = found === undefined;
  // It is read aloud when it changes, so only then.
  if (place.textContent !== (found?.words ?? "")) place.textContent = found?.words ?? "";
}

/** The first difference of two texts; none for other prompts, nor while one may go on as the other. */
export function differenceOf(one: Compared, other: Compared, isWriting: boolean): Difference | undefined {
  if (one.echo.trim() !== other.echo.trim()) return undefined;
  const places = sameModel(one.choice, other.choice) ? firstToken(one, other) : firstCharacter(one, other);
  if (places === undefined)
    return isWriting ? undefined : { places, words: `Both texts are equal${bits(one, other)}.` };
  const [here, there] = [pieceAt(one, places[0]), pieceAt(other, places[1])];
  if (isWriting && (here === undefined || there === undefined)) return undefined;
  const words = `The texts differ from token ${places[0] + 1} on: ${here ?? "the end"} in the first, ${there ?? "the end"} in the second.`;
  return { places, words };
}

/** Of one vocabulary: the first place with different tokens. */
function firstToken(one: Compared, other: Compared): [number, number] | undefined {
  const length = Math.max(one.steps.length, other.steps.length);
  for (let at = 0; at < length; at += 1) if (one.steps[at]?.token !== other.steps[at]?.token) return [at, at];
  return undefined;
}

/** Of two vocabularies: the tokens with the first character that differs. */
function firstCharacter(one: Compared, other: Compared): [number, number] | undefined {
  const [left, right] = [textOf(one), textOf(other)];
  let at = 0;
  while (at < left.length && left[at] === right[at]) at += 1;
  return at === left.length && at === right.length ? undefined : [tokenWith(one, at), tokenWith(other, at)];
}

function textOf({ steps }: Compared): string {
  return steps.map(({ text }) => text).join("");
}

/** The token that has a character of the text. */
function tokenWith({ steps }: Compared, character: number): number {
  let end = 0;
  for (const [place, { text }] of steps.entries()) {
    end += text.length;
    if (end > character) return place;
  }
  return steps.length;
}

function pieceAt({ steps }: Compared, place: number): string | undefined {
  const step = steps[place];
  if (step === undefined) return undefined;
  const share = step.logprob === undefined ? "" : ` (${percent(Math.exp(step.logprob))})`;
  return `“${visible(step.text)}”${share}`;
}

/** How far apart the log-probabilities of equal tokens are. */
function bits(one: Compared, other: Compared): string {
  const count = `: ${one.steps.length} tokens`;
  const hasAll = [one, other].every(({ steps }) => steps.every(({ logprob }) => logprob !== undefined));
  if (!sameModel(one.choice, other.choice) || !hasAll) return count;
  const gaps = one.steps.map(({ logprob = 0 }, at) => Math.abs(logprob - (other.steps[at]?.logprob ?? 0)));
  const first = gaps.findIndex((gap) => gap > 0);
  if (first < 0) return `${count}, and so is every bit of their log-probabilities`;
  const most = Math.max(...gaps).toExponential(1);
  return `${count}. Their log-probabilities differ from token ${first + 1} on, by at most ${most}`;
}

/** A text with its prompt and its tokens. */

import type { Model, TextDelta } from "setun";
import { visible } from "./alternatives.js";
import { type Choice, type CurrentModel, sameModel } from "./current-model.js";

/** Contents of a column. */
export interface Story {
  /** Caption above the text. */
  readonly caption: string;
  /** The model that generated it; tokens belong to its vocabulary. */
  readonly choice: Choice;
  /** Where this model is loaded, until another one is. */
  readonly writer: CurrentModel;
  /** The prompt as text. */
  readonly echo: string;
  /** The prompt as tokens. */
  readonly start: readonly number[];
  /** Its tokens so far. A fork starts with those of its parent. */
  readonly steps: TextDelta[];
  /** Number of tokens that a fork has from its parent; the user chose the last one. */
  readonly kept: number;
}

/** The model that generated a story, while it is loaded. */
export function modelOf({ choice, writer }: Story): Model | undefined {
  return writer.loaded && sameModel(writer.loaded.choice, choice) ? writer.loaded.model : undefined;
}

/** A fork of a story at a position, with the same or another token. */
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

/** Text of a token at a position. Detokenizers drop the space of the first word, so earlier tokens precede it. */
export async function textOf(model: Model, story: Story, place: number, token: number): Promise<string> {
  const there = story.steps[place];
  if (there?.token === token && there.text !== "") return there.text;
  const before = [...story.start, ...story.steps.slice(0, place).map((step) => step.token)].slice(-4);
  const [all, rest] = await Promise.all([model.detokenize([...before, token]), model.detokenize(before)]);
  // A character that was incomplete may be complete now.
  const length = rest.replace(/\uFFFD+$/, "").length;
  return all.slice(length);
}

function quoted(text: string): string {
  return text.trim() === "" ? visible(text) : `“${text.trim()}”`;
}

/** Runs: load if needed, write one text or two, fork a text from a token. */

import type { GenerateOptions, Model } from "setun";
import type { Column } from "./column.js";
import { readBackend, readFork, readTexts, type Text } from "./controls.js";
import type { Choice, CurrentModel } from "./current-model.js";
import { element } from "./elements.js";
import { ending, explain, Figures, inWords, showModel, showProgress, usedBy } from "./figures.js";
import { forked, type Story } from "./story.js";

/** The places for texts. */
export type Columns = readonly [Column, Column];

/** What is to be written, and where. */
interface Writing {
  readonly model: Model;
  readonly column: Column;
  readonly story: Story;
  readonly options: GenerateOptions;
  readonly signal: AbortSignal;
  /** Where it is counted; else its pace is told in words. */
  readonly figures?: Figures;
}

/** A token to fork from, and the one that is to stand there. */
export interface ForkPoint {
  readonly column: Column;
  readonly place: number;
  readonly token: number;
}

/** Writes what the controls say, one text or two at the same time, until all end or `signal` aborts. */
export async function run(current: CurrentModel, columns: Columns, signal: AbortSignal): Promise<void> {
  const [first] = columns;
  for (const column of columns) {
    column.clear();
    column.setState("idle", "");
  }
  const figures = new Figures();
  try {
    const texts = readTexts();
    showSecond(texts.length > 1);
    const model = await loadModel(current, first, signal);
    const { choice } = current;
    const written = texts.map(async (text, index) => {
      const column = columns[index] as Column;
      const { options } = text;
      await column.write(async () => {
        column.setState("running", "Reading the prompt…");
        const story = await begin(model, choice, text);
        await write({ model, column, story, options, signal, ...(index === 0 && { figures }) });
      });
    });
    await Promise.all(written);
  } catch (error) {
    failed(first, "done", error, signal);
  }
}

/** Writes another text from a token on, with that token or another, beside the text that it is of. */
export async function fork(
  current: CurrentModel,
  [first, second]: Columns,
  { column, place, token }: ForkPoint,
  signal: AbortSignal,
): Promise<void> {
  const { loaded } = current;
  const { story } = column;
  if (story === undefined || loaded === undefined) return;
  await second.write(async () => {
    if (column === second) await first.write(async () => first.takeFrom(second));
    showSecond(true);
    const { model, choice } = loaded;
    if (story.choice !== choice) throw new Error("Another model wrote this text: run it again to fork it.");
    second.setState("running", "Reading…");
    const branch = await forked(model, story, place, token);
    await write({ model, column: second, story: branch, options: readFork(), signal });
  });
}

/** Moves the model to the backend that the controls say, without writing anything. */
export async function move(current: CurrentModel, [first]: Columns, signal: AbortSignal): Promise<void> {
  try {
    const model = await loadModel(current, first, signal);
    first.setState("idle", `Moved: the next text is written on ${usedBy(model)}.`);
  } catch (error) {
    failed(first, "idle", error, signal);
  }
}

/** Shows the second column, or hides it. */
export function showSecond(isShown: boolean): void {
  element("second", HTMLElement).hidden = !isShown;
  element("texts", HTMLElement).toggleAttribute("data-two", isShown);
}

async function loadModel(current: CurrentModel, column: Column, signal: AbortSignal): Promise<Model> {
  column.setState("loading", "Loading the model…");
  try {
    const model = await current.get(readBackend(), { signal, onProgress: showProgress });
    showModel(model);
    return model;
  } finally {
    element("progress", HTMLElement).hidden = true;
  }
}

/** A story of which there is no more than its prompt. */
async function begin(model: Model, choice: Choice, { prompt, asChat }: Text): Promise<Story> {
  const isChat = asChat && model.info.hasChatTemplate;
  const session = model.session();
  await session.push(isChat ? [{ role: "user", content: prompt }] : prompt);
  const echo = isChat ? `${prompt}\n\n` : prompt;
  return { caption: "", choice, echo, start: session.tokens, steps: [], kept: 0 };
}

/** Goes on with a story. What the model has computed of it already is in its cache. */
async function write({ model, column, story, options, signal, figures }: Writing): Promise<void> {
  column.show(story);
  element("texts", HTMLElement).toggleAttribute("data-shaded", options.logprobs === true);
  const session = model.session();
  await session.push([...story.start, ...story.steps.map(({ token }) => token)]);
  const generation = session.generate(options);
  const stop = () => generation.stop();
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  let isFirst = true;
  await column.follow(generation, () => {
    if (isFirst) column.setState("running", "Generating…");
    isFirst = false;
    figures?.add();
  });
  const result = await generation.result;
  figures?.end(result);
  column.setState("done", ending(result) + (figures ? "" : inWords(result)));
}

function failed(column: Column, idle: "idle" | "done", error: unknown, signal: AbortSignal): void {
  if (signal.aborted && error === signal.reason) column.setState(idle, "Stopped while loading.");
  else column.setState("failed", explain(error));
}

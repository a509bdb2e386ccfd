/** Runs: loading, one or two generations, forks at a token. */

import type { GenerateOptions, Model, PromptProgress } from "setun";
import type { Column } from "./column.js";
import { readBackend, readFork, readTexts, type Text } from "./controls.js";
import type { CurrentModel } from "./current-model.js";
import { showDifference } from "./difference.js";
import { element } from "./elements.js";
import { explain } from "./explain.js";
import { ending, Figures, inWords, showModel, showProgress, usedBy } from "./figures.js";
import type { SecondModel, Writer } from "./second-model.js";
import { forked, modelOf, type Story } from "./story.js";

/** Tokens of a prompt whose progress is shown. */
const LONG_PROMPT = 256;

/** The two columns of texts. */
export type Columns = readonly [Column, Column];

/** Models of the two columns. */
export interface Models {
  readonly first: CurrentModel;
  readonly second: SecondModel;
}

/** A generation and its column. */
interface Writing {
  readonly model: Model;
  readonly columns: Columns;
  readonly column: Column;
  readonly story: Story;
  readonly options: GenerateOptions;
  readonly signal: AbortSignal;
  /** Figures of the run; without them the status reports the speed. */
  readonly figures?: Figures;
}

/** A position of a text, and the token that replaces the one there. */
export interface ForkPoint {
  readonly column: Column;
  readonly place: number;
  readonly token: number;
}

/** Runs one or two generations, in one batch if one model writes both, until all end or `signal` aborts. */
export async function run({ first, second }: Models, columns: Columns, signal: AbortSignal): Promise<void> {
  for (const column of columns) {
    column.clear();
    column.setState("idle", "");
  }
  showDifference(columns);
  const figures = new Figures();
  let [loading] = columns;
  try {
    const texts = readTexts(second.isOther);
    showSecond(texts.length > 1);
    if (texts.length === 1) await second.release();
    const writers = [{ current: first, wish: readBackend() }, await second.writer(first)] as const;
    const models: Model[] = [];
    for (const index of texts.keys()) {
      loading = columns[index] as Column;
      models.push(await loadModel(writers[index] as Writer, loading, signal));
    }
    showModel(models[0] as Model);
    const written = texts.map(async (text, index) => {
      const [column, model, writer] = [columns[index], models[index], writers[index]] as [
        Column,
        Model,
        Writer,
      ];
      const { options } = text;
      await column.write(async () => {
        column.setState("running", "Computing the prompt…");
        const story = await begin(model, writer.current, text, second.isOther);
        await write({ model, columns, column, story, options, signal, ...(index === 0 && { figures }) });
      });
    });
    await Promise.all(written);
  } catch (error) {
    failed(loading, "done", error, signal);
  }
}

/** Forks a text at a token, with that token or another, into the other column. */
export async function fork(
  columns: Columns,
  { column, place, token }: ForkPoint,
  signal: AbortSignal,
): Promise<void> {
  const [first, second] = columns;
  const { story } = column;
  if (story === undefined) return;
  await second.write(async () => {
    if (column === second) await first.write(async () => first.takeFrom(second));
    showSecond(true);
    const model = modelOf(story);
    if (model === undefined) throw new Error("Another model wrote this text. Run it again to fork it.");
    second.setState("running", "Computing the prefix…");
    const branch = await forked(model, story, place, token);
    await write({ model, columns, column: second, story: branch, options: readFork(), signal });
  });
}

/** Loads the model on the selected backend, without generating. */
export async function move(models: Models, [first]: Columns, signal: AbortSignal): Promise<void> {
  try {
    const model = await loadModel({ current: models.first, wish: readBackend() }, first, signal);
    showModel(model);
    first.setState("idle", `The next text runs on ${usedBy(model)}.`);
  } catch (error) {
    failed(first, "idle", error, signal);
  }
}

/** Shows the second column, or hides it. */
export function showSecond(isShown: boolean): void {
  element("second", HTMLElement).hidden = !isShown;
  element("texts", HTMLElement).toggleAttribute("data-two", isShown);
}

async function loadModel({ current, wish }: Writer, column: Column, signal: AbortSignal): Promise<Model> {
  column.setState("loading", "Loading the model…");
  try {
    return await current.get(wish, { signal, onProgress: showProgress });
  } finally {
    element("progress", HTMLElement).hidden = true;
  }
}

/** A story with a prompt only. Its caption names the model if two are compared. */
async function begin(
  model: Model,
  writer: CurrentModel,
  { prompt, asChat }: Text,
  areCompared: boolean,
): Promise<Story> {
  const isChat = asChat && model.info.hasChatTemplate;
  const session = model.session();
  await session.push(isChat ? [{ role: "user", content: prompt }] : prompt);
  const echo = isChat ? `${prompt}\n\n` : prompt;
  const { choice } = writer;
  const caption = areCompared ? `${choice.name}, ${usedBy(model)}` : "";
  return { caption, choice, writer, echo, start: session.tokens, steps: [], kept: 0 };
}

/** Continues a story. The prefix cache has what was computed before. */
async function write({ model, columns, column, story, options, signal, figures }: Writing): Promise<void> {
  column.show(story);
  element("texts", HTMLElement).toggleAttribute("data-shaded", options.logprobs === true);
  const session = model.session();
  await session.push([...story.start, ...story.steps.map(({ token }) => token)]);
  const onPromptProgress = ({ computedTokens, promptTokens }: PromptProgress) => {
    if (promptTokens < LONG_PROMPT) return;
    column.setState("running", `Reading the prompt: ${computedTokens} of ${promptTokens} tokens.`);
  };
  const generation = session.generate({ ...options, onPromptProgress });
  const stop = () => generation.stop();
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  let isFirst = true;
  await column.follow(generation, () => {
    if (isFirst) column.setState("running", "Generating…");
    // `first-text.mjs` reads it.
    if (isFirst && figures) performance.mark("first-text");
    isFirst = false;
    figures?.add();
    showDifference(columns);
  });
  const result = await generation.result;
  figures?.end(result);
  column.setState("done", ending(result) + (figures ? "" : inWords(result)));
  showDifference(columns);
}

function failed(column: Column, idle: "idle" | "done", error: unknown, signal: AbortSignal): void {
  if (signal.aborted && error === signal.reason) column.setState(idle, "Stopped while loading.");
  else column.setState("failed", explain(error));
}

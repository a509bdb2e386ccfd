/** The deltas of one or several generations in the order in which they come, and the texts and calls of one. */

import { type Generation, type GenerationResult, newId, type TextDelta, type ToolCallDelta } from "./core.js";

/** A delta of the generation `index`, or its result. */
export type Step =
  | { readonly index: number; readonly delta: TextDelta; readonly result?: never }
  | { readonly index: number; readonly delta?: never; readonly result: GenerationResult };

/** All steps. Leaving the loop, or an error of one generation, stops all of them. */
export async function* stepsOf(generations: readonly Generation[]): AsyncGenerator<Step, void, undefined> {
  const iterators = generations.map((generation) => generation[Symbol.asyncIterator]());
  const next = async (index: number) => ({ index, step: await iterators[index]?.next() });
  const pending = new Map(generations.map((_, index) => [index, next(index)]));
  try {
    while (pending.size > 0) {
      const { index, step } = await Promise.race(pending.values());
      pending.delete(index);
      if (step !== undefined && step.done !== true) {
        yield { index, delta: step.value };
        pending.set(index, next(index));
      } else {
        const generation = generations[index];
        if (generation !== undefined) yield { index, result: await generation.result };
      }
    }
  } finally {
    for (const generation of generations) generation.stop();
  }
}

/** What all generations gave, at their end. */
export async function collected(
  generations: readonly Generation[],
): Promise<{ deltas: readonly TextDelta[][]; results: readonly GenerationResult[] }> {
  const deltas = generations.map((): TextDelta[] => []);
  const results: GenerationResult[] = [];
  for await (const { index, delta, result } of stepsOf(generations)) {
    if (result === undefined) deltas[index]?.push(delta);
    else results[index] = result;
  }
  return { deltas, results };
}

/** The same steps, after the first one has come: an error before it rejects here. */
export async function begun<Item>(steps: AsyncGenerator<Item>): Promise<AsyncGenerator<Item>> {
  const first = await steps.next();
  return resumed(first, steps);
}

async function* resumed<Item>(
  first: IteratorResult<Item>,
  steps: AsyncGenerator<Item>,
): AsyncGenerator<Item, void, undefined> {
  try {
    if (first.done !== true) yield first.value;
    yield* steps;
  } finally {
    await steps.return(undefined);
  }
}

/** A text of an answer, its reasoning, or the input of a call, as far as it has come. */
export interface Block {
  /** Place among those of the answer, from 0. */
  readonly index: number;
  /** Whether it is reasoning. */
  readonly isReasoning: boolean;
  /** Absent for a text. */
  readonly call?: { readonly id: string; readonly name: string };
  text: string;
}

/** What happens to the last block of an answer. */
export type BlockStep =
  | { readonly type: "begin" | "end"; readonly block: Block }
  | { readonly type: "delta"; readonly block: Block; readonly delta: string };

/** The reasoning, texts and calls of an answer, one after the other: each begins, grows and ends. */
export class Blocks {
  #count = 0;
  #block: Block | undefined;
  /** That of the engine, of the last call. */
  #call: number | undefined;

  *add({ text, reasoning = "", toolCalls = [] }: TextDelta): Generator<BlockStep> {
    if (reasoning !== "") yield* this.#grow(reasoning, undefined, true);
    if (text !== "") yield* this.#grow(text);
    for (const call of toolCalls) yield* this.#grow(call.arguments ?? "", call);
  }

  *#grow(delta: string, call?: ToolCallDelta, isReasoning = false): Generator<BlockStep> {
    const { isReasoning: was } = this.#block ?? {};
    if (was !== isReasoning || this.#call !== call?.index) {
      yield* this.end();
      const named = call && { call: { id: call.id ?? newId("call_"), name: call.name ?? "" } };
      this.#block = { index: this.#count++, text: "", isReasoning, ...named };
      this.#call = call?.index;
      yield { type: "begin", block: this.#block };
    }
    const block = this.#block as Block;
    block.text += delta;
    if (delta !== "") yield { type: "delta", block, delta };
  }

  /** Ends the last block. */
  *end(): Generator<BlockStep> {
    if (this.#block !== undefined) yield { type: "end", block: this.#block };
    this.#block = undefined;
  }
}

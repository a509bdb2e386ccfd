/** The deltas of one or several generations in the order in which they come. */

import type { Generation, GenerationResult, TextDelta } from "./core.js";

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

/** The models that the page offers, as one list. */

import type { ModelEstimate, StoredModel } from "setun";
import { BUILT_IN, type Choice, sameModel } from "../current-model.js";
import { size } from "../figures.js";

/** A model of the list. */
export interface ModelEntry {
  readonly choice: Choice;
  /** What is known of it, in words. */
  readonly facts: readonly string[];
  /** What the browser has stored of it. */
  readonly stored?: StoredModel;
}

/** A stored model's choice; without a known source it can only be deleted. */
export function choiceOf({ name, source }: StoredModel): Choice {
  // The Hub's page of a model, which `load` knows by another name.
  const hub = /^https:\/\/huggingface\.co\/([^/]+\/[^/]+)$/.exec(source);
  const known = hub === null ? source : `hf:${hub[1]}`;
  return { name: known || name, source: known };
}

/** The built-in model, the current one, those that were looked up, and those that are stored; each one once. */
export function allEntries(
  current: Choice,
  found: readonly ModelEntry[],
  stored: readonly StoredModel[],
): ModelEntry[] {
  const entries: ModelEntry[] = [
    { choice: BUILT_IN, facts: ["Part of this page", "Writes children's stories"] },
  ];
  const add = (entry: ModelEntry) => {
    const at = entries.findIndex(({ choice }) => sameModel(choice, entry.choice));
    const known = entries[at];
    if (known === undefined) entries.push(entry);
    else entries[at] = { ...known, ...entry, choice: known.choice, facts: [...known.facts, ...entry.facts] };
  };
  add({ choice: current, facts: [] });
  for (const entry of found) add(entry);
  for (const model of stored) add({ choice: choiceOf(model), facts: storedFacts(model), stored: model });
  return entries;
}

function storedFacts({ bytes, licence, complete }: StoredModel): string[] {
  const state = complete ? `Stored here, ${size(bytes)}` : `Partly stored, ${size(bytes)}`;
  return licence === undefined ? [state] : [state, `Licence ${licence}`];
}

/** An estimate in words. */
export function estimatedFacts({
  bytes,
  storedBytes,
  memory,
  context,
  storage,
  backends,
}: ModelEstimate): string[] {
  const facts = [`Needs ${size(memory.total)} of memory`, `Context of ${context} tokens`];
  if (bytes !== undefined && bytes > 0) facts.unshift(`Download of ${size(bytes)}`);
  if (storedBytes > 0) facts.push(`${size(storedBytes)} are stored already`);
  if (storage?.fits === false) facts.push("The browser has too little room for it");
  if (!backends.some(({ fits }) => fits))
    facts.push(`It cannot run here: ${backends[0]?.reason ?? "no backend"}`);
  return facts;
}

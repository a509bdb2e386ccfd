/** The models that the page offers, as one list. */

import { type CatalogEntry, type ModelEstimate, models, type StoredModel } from "setun";
import { BUILT_IN, type Choice, choiceFor, inCatalog, sameModel } from "../current-model.js";
import { size } from "../figures.js";
import { type Device, estimatedFit, type Fit, fitOf } from "./device-fit.js";

/** A model of the list. */
export interface ModelEntry {
  readonly choice: Choice;
  /** What the catalog knows of it. */
  readonly catalog?: CatalogEntry;
  /** What its headers say, if they were read. */
  readonly estimate?: ModelEstimate;
  /** What the browser has stored of it. */
  readonly stored?: StoredModel;
}

/** A stored model's choice; without a known source it can only be deleted. */
export function choiceOf({ name, source }: StoredModel): Choice {
  // The Hub's page of a model, which `load` knows by another name.
  const hub = /^https:\/\/huggingface\.co\/([^/]+\/[^/]+)$/.exec(source);
  const known = hub === null ? source : `hf:${hub[1]}`;
  return known === "" ? { name, source: known } : choiceFor(known);
}

/** The built-in model, the current one, those that were looked up, those that are stored, the catalog; each one once. */
export function allEntries(
  current: Choice,
  found: readonly ModelEntry[],
  stored: readonly StoredModel[],
): ModelEntry[] {
  const entries: ModelEntry[] = [{ choice: BUILT_IN }];
  const add = (entry: ModelEntry) => {
    const at = entries.findIndex(({ choice }) => sameModel(choice, entry.choice));
    const known = entries[at];
    if (known === undefined) entries.push(withCatalog(entry));
    else entries[at] = { ...known, ...entry, choice: known.choice };
  };
  add({ choice: current });
  for (const entry of found) add(entry);
  for (const model of stored) add({ choice: choiceOf(model), stored: model });
  for (const { name } of models.catalog) add({ choice: choiceFor(name) });
  return entries;
}

function withCatalog(entry: ModelEntry): ModelEntry {
  const catalog = inCatalog(entry.choice.source);
  return catalog === undefined ? entry : { ...entry, catalog };
}

/** Whether a model runs here, as far as it is known without a download. */
export function fitHere({ choice, estimate, catalog }: ModelEntry, device: Device): Fit | undefined {
  if (estimate !== undefined) return estimatedFit(estimate.backends);
  if (catalog !== undefined) return fitOf(catalog.memory, device);
  return choice === BUILT_IN ? { runs: "yes", words: "" } : undefined;
}

/** Whether a text of the search field names a model. */
export function matches({ choice, catalog }: ModelEntry, text: string): boolean {
  const { name = "", title = "", family = "", repository = "", licence = "" } = catalog ?? {};
  const all = [choice.name, name, title, family, repository, licence].join(" ").toLowerCase();
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => all.includes(word));
}

/** What is known of a model, in words. */
export function factsOf({ choice, catalog, estimate, stored }: ModelEntry): string[] {
  return [
    ...(choice === BUILT_IN ? ["Part of this page", "Writes children's stories"] : []),
    ...(estimate ? estimatedFacts(estimate) : []),
    ...(catalog && !estimate ? sizeFacts(catalog) : []),
    ...(catalog ? [catalog.chatTemplate ? "Chats" : "Continues texts", `Licence ${catalog.licence}`] : []),
    ...(stored ? storedFacts(stored, catalog === undefined) : []),
  ];
}

function sizeFacts({ parameters, bytes, memory, contextLength }: CatalogEntry): string[] {
  return [
    `${(parameters / 1e9).toFixed(1)} billion parameters`,
    `Download of ${size(bytes)}`,
    `Needs ${size(memory)} of memory`,
    ...(contextLength === undefined ? [] : [`Context of ${contextLength} tokens`]),
  ];
}

function storedFacts({ bytes, licence, complete }: StoredModel, withLicence: boolean): string[] {
  const state = complete ? `Stored here, ${size(bytes)}` : `Partly stored, ${size(bytes)}`;
  return licence === undefined || !withLicence ? [state] : [state, `Licence ${licence}`];
}

function estimatedFacts({ bytes, storedBytes, memory, context, storage }: ModelEstimate): string[] {
  const facts = [`Needs ${size(memory.total)} of memory`, `Context of ${context} tokens`];
  if (bytes !== undefined && bytes > 0) facts.unshift(`Download of ${size(bytes)}`);
  if (storedBytes > 0) facts.push(`${size(storedBytes)} are stored already`);
  if (storage?.fits === false) facts.push("The browser has too little room for it");
  return facts;
}

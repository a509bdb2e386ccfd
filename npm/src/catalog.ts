/** Catalog of public ternary models, each with a short name. */

import { CATALOG } from "./catalog-entries.js";
import { HUB_PREFIX } from "./hub-name.js";

/** A public model. */
export interface CatalogEntry {
  /** Short name, a source of `load`. */
  readonly name: string;
  /** Name to show. */
  readonly title: string;
  /** Series that the model belongs to. */
  readonly family: string;
  /** Number of parameters. */
  readonly parameters: number;
  /** `owner/name` on the Hub. */
  readonly repository: string;
  /** The file of the repository, if it has several models. */
  readonly file?: string;
  /** Format of the weights. */
  readonly format: "safetensors" | "gguf";
  /** Size of the weights to download. */
  readonly bytes: number;
  /** Peak memory on a CPU in bytes, with a context of at most 4,096 tokens. */
  readonly memory: number;
  /** Licence as the repository names it, or that of the model it was made from. */
  readonly licence: string;
  /** Context length in tokens, if a public source states it. */
  readonly contextLength?: number;
  /** Format of the chat template, if the model has one. */
  readonly chatTemplate?: ChatTemplateFormat;
  /** Sampling options that the authors recommend, if they do. Safetensors models have them as defaults. */
  readonly sampling?: RecommendedSampling;
}

/** Formats of chat templates, by the names of llama.cpp and bitnet.cpp. */
export type ChatTemplateFormat = "bitnet" | "chatml" | "falcon-e" | "falcon3" | "llama3" | "qwen3.5";

/** Sampling options that the authors of a model recommend: options of a request. */
export interface RecommendedSampling {
  /** Option `temperature`. */
  readonly temperature?: number;
  /** Option `topP`. */
  readonly topP?: number;
  /** Option `topK`. */
  readonly topK?: number;
}

/** All short names. */
export function catalogNames(): string[] {
  return CATALOG.map(({ name }) => name);
}

/** The Hub name that a short name stands for; any other source as it is. */
export function catalogSource<Source>(source: Source): Source | string {
  const entry = CATALOG.find(({ name }) => name === source);
  if (entry === undefined) return source;
  const { repository, file } = entry;
  return `${HUB_PREFIX}${repository}${file === undefined ? "" : `:${file}`}`;
}

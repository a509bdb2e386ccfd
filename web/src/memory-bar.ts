/** Memory of a model by kind, as one bar. */

import type { MemoryByKind, Metrics } from "setun";
import { type Kinds, PartsBar, sumOf } from "./parts-bar.js";

/** Memory by kind, and blocks of the KV cache. */
export type MemoryMetrics = Pick<Metrics, "memory" | "blocks" | "usedBlocks" | "cachedBlocks">;

const KINDS: Kinds<keyof MemoryByKind> = [
  ["layers", "layers"],
  ["head", "output head"],
  ["prefilter", "head prefilter", "prefilter"],
  ["kvCache", "KV cache"],
];

/** A bar with a part for each kind, and its legend. */
export class MemoryBar {
  readonly #bar = new PartsBar("memory", "Memory", KINDS);
  readonly element = this.#bar.element;

  show({ memory, blocks, usedBlocks, cachedBlocks }: MemoryMetrics): void {
    const more = `KV cache blocks: ${usedBlocks} in use, ${cachedBlocks} in the prefix cache, ${blocks} at most.`;
    this.#bar.show([megabytes(sumOf({ ...memory })), more], memory, megabytes);
  }
}

function megabytes(bytes: number): string {
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(2)} GB`;
}

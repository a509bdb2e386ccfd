/** Memory of a model by kind, as one bar. */

import type { MemoryByKind, Metrics } from "setun";

/** Memory by kind, and blocks of the KV cache. */
export type MemoryMetrics = Pick<Metrics, "memory" | "blocks" | "usedBlocks" | "cachedBlocks">;

const KINDS: readonly (readonly [keyof MemoryByKind, string])[] = [
  ["layers", "layers"],
  ["head", "output head"],
  ["prefilter", "head prefilter"],
  ["kvCache", "KV cache"],
];

/** A bar with a part for each kind, and its legend. */
export class MemoryBar {
  readonly element = document.createElement("div");
  readonly #sum = document.createElement("dd");
  readonly #bar = document.createElement("dd");
  readonly #legend = document.createElement("dd");
  readonly #blocks = document.createElement("dd");
  readonly #parts = KINDS.map(([kind, name]) => {
    const [part, figure] = [document.createElement("span"), document.createElement("span")];
    for (const one of [part, figure]) one.dataset.kind = kind;
    return { kind, name, part, figure };
  });

  constructor() {
    const term = document.createElement("dt");
    term.textContent = "Memory";
    this.element.dataset.figure = "memory";
    this.#bar.className = "parts";
    this.#bar.ariaHidden = "true";
    this.#legend.className = "legend";
    this.#blocks.className = "more";
    this.#bar.append(...this.#parts.map(({ part }) => part));
    this.#legend.append(...this.#parts.map(({ figure }) => figure));
    this.#sum.textContent = "–";
    for (const { figure, name } of this.#parts) figure.textContent = `${name} –`;
    this.element.append(term, this.#sum, this.#bar, this.#legend, this.#blocks);
  }

  show({ memory, blocks, usedBlocks, cachedBlocks }: MemoryMetrics): void {
    const sum = KINDS.reduce((sum, [kind]) => sum + memory[kind], 0);
    this.#sum.textContent = megabytes(sum);
    for (const { kind, name, part, figure } of this.#parts) {
      part.style.flexGrow = String(memory[kind] / Math.max(sum, 1));
      figure.textContent = `${name} ${megabytes(memory[kind])}`;
    }
    this.#blocks.textContent = `KV cache blocks: ${usedBlocks} in use, ${cachedBlocks} in the prefix cache, ${blocks} at most.`;
  }
}

function megabytes(bytes: number): string {
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(2)} GB`;
}

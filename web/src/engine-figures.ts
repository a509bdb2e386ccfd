/** An engine's figures, with their last values as lines and shares as bars. */

import type { Metrics, Model, Summary } from "setun";
import { duration } from "./chart.js";
import { MemoryBar } from "./memory-bar.js";
import { Sparkline } from "./sparkline.js";

/** What is shown of a figure. */
interface Shown {
  readonly value: string;
  /** More about it, in small. */
  readonly more: string;
  /** The next value of its line. */
  readonly next?: number | undefined;
  /** A share of 1, for its bar. */
  readonly share?: number;
}

/** Two looks at the same engine. */
interface Change {
  readonly now: Metrics;
  readonly before: Metrics;
  readonly seconds: number;
}

type Figure = readonly [name: string, title: string, kind: "line" | "bar", show: (change: Change) => Shown];

const FIGURES: readonly Figure[] = [
  ["rate", "Tokens/s", "line", rate],
  ["between", "Between tokens", "line", (change) => times(change, "betweenTokens")],
  ["first", "First token", "line", (change) => times(change, "firstToken")],
  ["step", "Step", "line", (change) => times(change, "stepTime")],
  ["batch", "Batch", "line", batch],
  ["queue", "Queue", "line", queue],
  ["cache", "Found in cache", "bar", found],
  ["guesses", "Guesses right", "bar", guesses],
];

/** Nothing was counted yet. */
const NOTHING: Shown = { value: "–", more: "" };

/** Fills a list of definitions. */
export class EngineFigures {
  readonly #tiles = FIGURES.map(([name, title, kind, show]) => ({ tile: new Tile(name, title, kind), show }));
  readonly #memory = new MemoryBar();
  #model: Model | undefined;
  #last: { readonly metrics: Metrics; readonly time: number } | undefined;

  constructor(list: HTMLDListElement) {
    list.append(...this.#tiles.map(({ tile }) => tile.element), this.#memory.element);
  }

  /** Shows what an engine has counted by now. */
  show(model: Model, now: Metrics, time: number): void {
    if (model !== this.#model) {
      this.#model = model;
      this.#last = undefined;
      for (const { tile } of this.#tiles) tile.clear();
    }
    const { metrics: before, time: then } = this.#last ?? { metrics: now, time };
    const change = { now, before, seconds: (time - then) / 1000 };
    for (const { tile, show } of this.#tiles) tile.show(show(change));
    this.#memory.show(now);
    this.#last = { metrics: now, time };
  }
}

/** A name, a figure, more about it, and a line or a bar. */
class Tile {
  readonly element = document.createElement("div");
  readonly #value = document.createElement("dd");
  readonly #more = document.createElement("dd");
  readonly #bar = document.createElement("dd");
  readonly #line = new Sparkline();

  constructor(name: string, title: string, kind: "line" | "bar") {
    const term = document.createElement("dt");
    term.textContent = title;
    this.element.dataset.figure = name;
    this.#more.className = "more";
    this.#bar.className = kind;
    this.#bar.ariaHidden = "true";
    if (kind === "line") this.#bar.append(this.#line.element);
    this.element.append(term, this.#value, this.#bar, this.#more);
    this.show(NOTHING);
  }

  clear(): void {
    this.#line.clear();
    this.show(NOTHING);
  }

  show({ value, more, next, share = 0 }: Shown): void {
    this.#value.textContent = value;
    this.#more.textContent = more;
    this.#line.add(next);
    this.#bar.style.setProperty("--share", String(share));
  }
}

function rate({ now, before, seconds }: Change): Shown {
  const made = now.tokens - before.tokens;
  const isIdle = now.running + now.waiting === 0 && made === 0;
  const next = seconds > 0 && !isIdle ? made / seconds : undefined;
  return {
    value: next === undefined ? "–" : next.toFixed(next < 100 ? 1 : 0),
    more: `${now.tokens} tokens in all`,
    next,
  };
}

/** Times of which one half is shorter; the line has what came since the last look. */
function times({ now, before }: Change, name: "betweenTokens" | "firstToken" | "stepTime"): Shown {
  const { p50, p99 } = now[name];
  if (p50 === undefined || p99 === undefined) return NOTHING;
  return {
    value: duration(p50),
    more: `99 of 100 in ${duration(p99)}`,
    next: recent(now[name], before[name]),
  };
}

/** The mean of what came between two looks. */
function recent(now: Summary, before: Summary): number | undefined {
  const count = now.count - before.count;
  const sum = (of: Summary) => (of.mean ?? 0) * of.count;
  return count > 0 ? (sum(now) - sum(before)) / count : undefined;
}

function batch({ now, before }: Change): Shown {
  const { mean, p99 } = now.stepRows;
  if (mean === undefined) return NOTHING;
  const next = recent(now.stepRows, before.stepRows);
  const rows = next ?? mean;
  return { value: `${rows.toFixed(rows < 10 ? 1 : 0)} rows`, more: `most steps up to ${p99}`, next };
}

function queue({ now }: Change): Shown {
  const { p50 } = now.queue;
  return {
    value: `${now.waiting} waiting`,
    more: `${now.running} running${p50 === undefined ? "" : `, waited ${duration(p50)}`}`,
    next: now.waiting + now.running,
  };
}

/** Prompts that begin as others did. */
function found({ now }: Change): Shown {
  const { admissions, prefixHits, reusedPositions } = now;
  if (admissions === 0) return NOTHING;
  const share = prefixHits / admissions;
  return { value: `${prefixHits} of ${admissions}`, more: `${reusedPositions} tokens reused`, share };
}

function guesses({ now }: Change): Shown {
  const { guessed, right, verifications } = now;
  if (guessed === 0) return { ...NOTHING, more: "none guessed" };
  return { value: `${right} of ${guessed}`, more: `in ${verifications} steps`, share: right / guessed };
}

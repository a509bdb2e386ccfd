/** An engine's figures, with their last values as lines and shares as bars. */

import type { Metrics, Model, Summary } from "setun";
import { duration } from "./chart.js";
import { MemoryBar } from "./memory-bar.js";
import { Sparkline } from "./sparkline.js";

/** What is shown of a figure. */
interface Shown {
  /** Left out where what was shown last still holds. */
  readonly value?: string;
  /** More about it, in small. */
  readonly more: string;
  /** The next value of its line. */
  readonly next?: number | undefined;
  /** A share of 1, for its bar. */
  readonly share?: number;
}

/** Two looks at the same engine; the first has none before it. */
interface Change {
  readonly now: Metrics;
  readonly before: Metrics | undefined;
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
  #before: Metrics | undefined;

  constructor(list: HTMLDListElement) {
    list.append(...this.#tiles.map(({ tile }) => tile.element), this.#memory.element);
  }

  /** Shows what an engine has counted by now. */
  show(model: Model, now: Metrics): void {
    if (model !== this.#model) {
      this.#model = model;
      this.#before = undefined;
      for (const { tile } of this.#tiles) tile.clear();
    }
    for (const { tile, show } of this.#tiles) tile.show(show({ now, before: this.#before }));
    this.#memory.show(now);
    this.#before = now;
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
    if (value !== undefined) this.#value.textContent = value;
    this.#more.textContent = more;
    this.#line.add(next);
    this.#bar.style.setProperty("--share", String(share));
  }
}

/** By the time that steps took: it is the same whenever one looks. */
function rate({ now, before }: Change): Shown {
  const [made, milliseconds] = [now.tokens - (before?.tokens ?? 0), added(now.stepTime, before?.stepTime)];
  const next = milliseconds > 0 ? (1000 * made) / milliseconds : undefined;
  const more = `${now.tokens} tokens in all`;
  return next === undefined ? { more } : { value: next.toFixed(next < 100 ? 1 : 0), more, next };
}

/** Times of which one half is shorter; the line has what came since the last look. */
function times({ now, before }: Change, name: "betweenTokens" | "firstToken" | "stepTime"): Shown {
  const { p50, p99 } = now[name];
  if (p50 === undefined || p99 === undefined) return NOTHING;
  return {
    value: duration(p50),
    more: `99 of 100 in ${duration(p99)}`,
    next: recent(now[name], before?.[name]),
  };
}

/** The mean of what came between two looks. */
function recent(now: Summary, before: Summary | undefined): number | undefined {
  const count = now.count - (before?.count ?? 0);
  return count > 0 ? added(now, before) / count : undefined;
}

/** The sum of what came between two looks. */
function added(now: Summary, before: Summary | undefined): number {
  const sum = (of: Summary | undefined) => (of?.mean ?? 0) * (of?.count ?? 0);
  return sum(now) - sum(before);
}

function batch({ now, before }: Change): Shown {
  const { mean, p99 } = now.stepRows;
  if (mean === undefined) return NOTHING;
  const next = recent(now.stepRows, before?.stepRows);
  const more = `99 of 100 up to ${p99}`;
  return next === undefined ? { more } : { value: `${next.toFixed(next < 10 ? 1 : 0)} rows`, more, next };
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

/** Metrics of the engine, as numbers with sparklines and bars. */

import type { Metrics, Summary } from "setun";
import { duration } from "./chart.js";
import { make } from "./elements.js";
import { term } from "./glossary.js";
import { MemoryBar, type MemoryMetrics } from "./memory-bar.js";
import { Sparkline } from "./sparkline.js";

/** The metrics that are shown. */
export type FigureMetrics = MemoryMetrics &
  Pick<
    Metrics,
    | "acceptedTokens"
    | "admissions"
    | "cachedPromptTokens"
    | "drafts"
    | "draftTokens"
    | "interTokenLatency"
    | "prefixHits"
    | "queueTime"
    | "running"
    | "stepRows"
    | "stepTime"
    | "timeToFirstToken"
    | "tokens"
    | "waiting"
  >;

/** Displayed values of a figure. */
interface Shown {
  /** Absent if the last value is still valid. */
  readonly value?: string;
  /** A detail in small type. */
  readonly more: string;
  /** The next value of its line. */
  readonly next?: number | undefined;
  /** Fraction for the bar, 0 to 1. */
  readonly share?: number;
}

/** Two successive metrics of the same engine. */
interface Change {
  readonly now: FigureMetrics;
  readonly before: FigureMetrics | undefined;
}

type Figure = readonly [
  name: string,
  title: string,
  kind: "line" | "bar",
  show: (change: Change) => Shown,
  /** Its definition in the glossary. */
  definition?: string,
];

const FIGURES: readonly Figure[] = [
  ["rate", "Throughput", "line", rate],
  ["between", "Time between tokens", "line", (change) => times(change, "interTokenLatency")],
  ["first", "First token, median", "line", (change) => times(change, "timeToFirstToken")],
  ["step", "Time of a step", "line", (change) => times(change, "stepTime")],
  ["batch", "Rows in a step", "line", batch],
  ["queue", "Queue", "line", queue],
  ["cache", "Prompts found in the cache", "bar", prefixCache],
  ["drafts", "Speculative tokens accepted", "bar", drafts, "speculative"],
];

/** A figure without values. */
const NOTHING: Shown = { value: "–", more: "" };

/** The list of figures. */
export class EngineFigures {
  readonly #tiles = FIGURES.map(([name, title, kind, show, definition]) => ({
    tile: new Tile(name, definition === undefined ? title : term(definition, title), kind),
    show,
  }));
  readonly #memory = new MemoryBar();
  #source: object | undefined;
  #before: FigureMetrics | undefined;

  constructor(list: HTMLDListElement) {
    list.append(...this.#tiles.map(({ tile }) => tile.element), this.#memory.element);
  }

  /** Shows the current metrics of a model or a server. */
  show(source: object, now: FigureMetrics): void {
    if (source !== this.#source) {
      this.#source = source;
      this.#before = undefined;
      for (const { tile } of this.#tiles) tile.clear();
    }
    for (const { tile, show } of this.#tiles) tile.show(show({ now, before: this.#before }));
    this.#memory.show(now);
    this.#before = now;
  }
}

/** A figure with its title, its detail, and a sparkline or a bar. */
class Tile {
  readonly element = document.createElement("div");
  readonly #value = document.createElement("dd");
  readonly #more = document.createElement("dd");
  readonly #bar = document.createElement("dd");
  readonly #line = new Sparkline();

  constructor(name: string, title: Node | string, kind: "line" | "bar") {
    const heading = make("dt", {}, title);
    this.element.dataset.figure = name;
    this.#more.className = "more";
    this.#bar.className = kind;
    this.#bar.ariaHidden = "true";
    if (kind === "line") this.#bar.append(this.#line.element);
    this.element.append(heading, this.#value, this.#bar, this.#more);
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

/** Tokens per second of step time, which does not depend on the interval of the display. */
function rate({ now, before }: Change): Shown {
  const [made, milliseconds] = [now.tokens - (before?.tokens ?? 0), added(now.stepTime, before?.stepTime)];
  const next = milliseconds > 0 ? (1000 * made) / milliseconds : undefined;
  const more = `${now.tokens} tokens in total`;
  return next === undefined
    ? { more }
    : { value: `${next.toFixed(next < 100 ? 1 : 0)} tokens/s`, more, next };
}

/** Median of a duration; the sparkline has the mean since the last update. */
function times({ now, before }: Change, name: "interTokenLatency" | "timeToFirstToken" | "stepTime"): Shown {
  const { p50, p99 } = now[name];
  if (p50 === undefined || p99 === undefined) return NOTHING;
  return {
    value: duration(p50),
    more: `p99 ${duration(p99)}`,
    next: recent(now[name], before?.[name]),
  };
}

/** Mean of the values since the last update. */
function recent(now: Summary, before: Summary | undefined): number | undefined {
  const count = now.count - (before?.count ?? 0);
  return count > 0 ? added(now, before) / count : undefined;
}

/** Sum of the values since the last update. */
function added(now: Summary, before: Summary | undefined): number {
  const sum = (of: Summary | undefined) => (of?.mean ?? 0) * (of?.count ?? 0);
  return sum(now) - sum(before);
}

function batch({ now, before }: Change): Shown {
  const { mean, p99 } = now.stepRows;
  if (mean === undefined) return NOTHING;
  const next = recent(now.stepRows, before?.stepRows);
  const more = `p99 ${p99} rows`;
  return next === undefined ? { more } : { value: `${next.toFixed(next < 10 ? 1 : 0)} rows`, more, next };
}

function queue({ now }: Change): Shown {
  const { p50 } = now.queueTime;
  return {
    value: `${now.waiting} waiting`,
    more: `${now.running} running${p50 === undefined ? "" : `, wait ${duration(p50)}`}`,
    next: now.waiting + now.running,
  };
}

/** Requests with a cached prefix. */
function prefixCache({ now }: Change): Shown {
  const { admissions, prefixHits, cachedPromptTokens } = now;
  if (admissions === 0) return NOTHING;
  const share = prefixHits / admissions;
  return { value: `${prefixHits} of ${admissions}`, more: `${cachedPromptTokens} tokens reused`, share };
}

function drafts({ now }: Change): Shown {
  const { draftTokens, acceptedTokens, drafts } = now;
  if (draftTokens === 0) return { ...NOTHING, more: "no draft tokens" };
  const share = acceptedTokens / draftTokens;
  return { value: `${acceptedTokens} of ${draftTokens}`, more: `in ${drafts} drafts`, share };
}

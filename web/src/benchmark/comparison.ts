/** Speeds of setun and of other engines as bars, with the result of this browser among them. */

import { COMPARISONS } from "virtual:comparison";
import { BUILT_IN } from "../current-model.js";
import { make } from "../elements.js";
import type { BenchmarkResult } from "./result.js";

/** Models of the comparisons: their titles, and whether a result has the model. */
const MODELS = {
  story: { title: "Story model", has: (name: string) => name === BUILT_IN.name },
  "2b4t": { title: "Shape of BitNet b1.58 2B4T", has: (name: string) => /\b2B[\s-]?4T\b/i.test(name) },
} as const;

/** Where the figures come from. */
const SOURCE = "https://github.com/setun-rs/setun/blob/main/docs/performance.md";

/** A chart for each comparison. */
export function comparisonCharts(own: BenchmarkResult | undefined): HTMLElement[] {
  return COMPARISONS.map(({ model, where, date, engines }) => {
    const { title, has } = MODELS[model];
    const mine = own && has(own.model) ? [{ name: nameOf(own), speed: own.decode }] : [];
    const all = [...mine, ...engines].toSorted((one, other) => other.speed - one.speed);
    const most = all[0]?.speed ?? 1;
    const bars = all.map(({ name, speed }) => {
      const bar = make(
        "li",
        {},
        make("span", { textContent: name }),
        make("b", { textContent: figure(speed) }),
      );
      bar.style.setProperty("--share", String(speed / most));
      bar.toggleAttribute(
        "data-own",
        mine.some((each) => each.name === name),
      );
      return bar;
    });
    const source = make("a", { href: SOURCE, textContent: "conditions" });
    return make(
      "section",
      { className: "comparison" },
      make("h3", { textContent: `${title}, ${where}` }),
      make("p", { className: "hint" }, `Decode, tokens/s, measured on ${date}: `, source, "."),
      make("ul", { className: "bars" }, ...bars),
    );
  });
}

function nameOf({ build, threads }: BenchmarkResult): string {
  return `This browser, ${build}, ${threads} ${threads === 1 ? "thread" : "threads"}`;
}

function figure(speed: number): string {
  return speed.toFixed(speed < 100 ? 1 : 0);
}

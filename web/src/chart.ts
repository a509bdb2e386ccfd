/** Time per token as bars, with a line at the median. */

import { element, say } from "./elements.js";

const SVG = "http://www.w3.org/2000/svg";

/** Height of the drawing, in its own units. */
const HEIGHT = 100;

/** At least this many places for bars, so that a short text does not fill the width with slabs. */
const FEWEST_PLACES = 48;

/** Draws all but the first token, whose time is that of the prompt. */
export function drawChart(milliseconds: readonly number[]): void {
  const chart = element("chart", SVGSVGElement);
  const times = milliseconds.slice(1);
  chart.dataset.milliseconds = JSON.stringify(milliseconds.map((time) => Math.round(time * 1000) / 1000));
  if (times.length === 0) {
    chart.replaceChildren();
    say("chart-text", "Time per token");
    return;
  }
  const sorted = times.toSorted((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)] ?? 0;
  const slowest = sorted.at(-1) ?? 0;
  // One slow token must not flatten all others.
  const scale = HEIGHT / Math.max(4 * median, 1e-3);
  const width = Math.max(times.length, FEWEST_PLACES);
  chart.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  const line = HEIGHT - median * scale;
  chart.replaceChildren(bars(times, scale), shape("path", { class: "median", d: `M0 ${line}H${width}` }));
  const words = `median ${duration(median)}, slowest ${duration(slowest)}`;
  chart.setAttribute("aria-label", `Time per token: ${words}, of ${times.length} tokens`);
  say("chart-text", `Time per token · ${words}`);
}

function bars(times: readonly number[], scale: number): SVGElement {
  const tops = times.map((time) => Math.max(HEIGHT - time * scale, 0));
  const steps = tops.map((top, token) => `M${token + 0.1} ${HEIGHT}V${top.toFixed(2)}h.8V${HEIGHT}z`);
  return shape("path", { class: "bars", d: steps.join("") });
}

function shape(name: string, attributes: Record<string, string>): SVGElement {
  const made = document.createElementNS(SVG, name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  return made as SVGElement;
}

/** A time in words. */
export function duration(milliseconds: number): string {
  if (milliseconds >= 1000) return `${(milliseconds / 1000).toFixed(1)} s`;
  return `${milliseconds.toFixed(milliseconds < 10 ? 1 : 0)} ms`;
}

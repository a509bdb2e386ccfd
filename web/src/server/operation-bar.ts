/** Time of steps by operation, as one bar. */

import { duration } from "../chart.js";
import { type Kinds, PartsBar, sumOf } from "../parts-bar.js";
import type { Samples } from "./prometheus.js";

/** Groups of operations. */
type Group = "layers" | "gate" | "attention" | "head" | "rows" | "other";

const GROUPS: Kinds<Group> = [
  ["layers", "q, k, v, o and down"],
  ["gate", "gate and up"],
  ["attention", "attention"],
  ["head", "output head"],
  ["rows", "norms and embedding"],
  ["other", "sampling and the rest"],
];

/** The group of each operation; one that is not here is among the rest. */
const GROUP_OF: Readonly<Record<string, Group>> = {
  ternary_matmul: "layers",
  gate: "gate",
  attention: "attention",
  rope_append: "attention",
  head: "head",
  top_logits: "head",
  argmax: "head",
  embed: "rows",
  rms_norm: "rows",
  head_norm: "rows",
  quantize: "rows",
};

/** Updates that the bar looks back on. */
const WINDOW = 20;

const MORE = "Of about ten seconds in which steps ran, from steps that were timed.";

/** Where the time of the last steps went. */
export class OperationBar {
  readonly #bar = new PartsBar("operations", "Step time by operation", GROUPS);
  readonly element = this.#bar.element;
  readonly #updates: Record<Group, number>[] = [];

  show(samples: Samples): void {
    const now = times(samples);
    const before = this.#updates[0] ?? now;
    const spent = { ...now };
    for (const [group] of GROUPS) spent[group] = Math.max(now[group] - before[group], 0);
    this.#updates.push(now);
    if (this.#updates.length > WINDOW) this.#updates.shift();
    // What was shown last stays while nothing runs.
    const whole = sumOf(spent);
    if (whole === 0) return;
    const percent = (seconds: number) => `${((100 * seconds) / whole).toFixed(1)} %`;
    this.#bar.show([duration(1000 * whole), MORE], spent, percent);
  }
}

/** Seconds of each group since the server's start. */
function times(samples: Samples): Record<Group, number> {
  const sums = { layers: 0, gate: 0, attention: 0, head: 0, rows: 0, other: 0 };
  for (const { labels, value } of samples.get("operation_time_seconds_total") ?? []) {
    const name = /(?:^|,)operation="([^"]*)"/.exec(labels)?.[1] ?? "";
    sums[GROUP_OF[name] ?? "other"] += value;
  }
  return sums;
}

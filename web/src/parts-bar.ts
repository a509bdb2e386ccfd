/** A whole by its parts: one bar, and a legend. */

import { make } from "./elements.js";
import { term } from "./glossary.js";

/** A kind of part, its name, and its definition in the glossary. */
export type Kinds<Kind extends string> = readonly (readonly [
  kind: Kind,
  name: string,
  definition?: string,
])[];

/** A figure with a title, a bar with a part for each kind, and its legend. */
export class PartsBar<Kind extends string> {
  readonly element = make("div", { className: "wide" });
  readonly #whole = make("dd", { textContent: "–" });
  readonly #more = make("dd", { className: "more" });
  readonly #parts;

  constructor(figure: string, title: string, kinds: Kinds<Kind>) {
    this.#parts = kinds.map(([kind, name, definition]) => {
      const [part, value] = [make("span", {}), make("b", { textContent: "–" })];
      const shown = definition === undefined ? name : term(definition, name);
      const entry = make("span", {}, shown, " ", value);
      for (const one of [part, entry]) one.dataset.kind = kind;
      return { kind, part, value, entry };
    });
    this.element.dataset.figure = figure;
    const bar = make("dd", { className: "parts", ariaHidden: "true" });
    const legend = make("dd", { className: "legend" });
    bar.append(...this.#parts.map(({ part }) => part));
    legend.append(...this.#parts.map(({ entry }) => entry));
    this.element.append(make("dt", { textContent: title }), this.#whole, bar, legend, this.#more);
  }

  /** Shows the whole in words, a sentence below, and the parts, of which `write` gives the words. */
  show(
    [whole, more]: readonly [whole: string, more: string],
    values: Readonly<Record<Kind, number>>,
    write: (value: number) => string,
  ): void {
    this.#whole.textContent = whole;
    this.#more.textContent = more;
    const sum = sumOf(values);
    for (const { kind, part, value } of this.#parts) {
      part.style.flexGrow = String(values[kind] / Math.max(sum, Number.MIN_VALUE));
      value.textContent = write(values[kind]);
    }
  }
}

export function sumOf(values: Readonly<Record<string, number>>): number {
  return Object.values(values).reduce((sum, value) => sum + value, 0);
}

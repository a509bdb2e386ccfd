/** A tensor in the table of the explorer. */

import { make } from "../elements.js";
import { size } from "../figures.js";
import type { Counts } from "./codes.js";
import { matrixShape } from "./findings.js";
import type { Tensor } from "./tensor.js";

/** Values and their names in the style sheet. */
const VALUES = [
  ["minus", "−1"],
  ["zero", "0"],
  ["plus", "+1"],
] as const;

/** A row; the weights by value are shown once they are counted. */
export class TensorRow {
  readonly element: HTMLTableRowElement;
  readonly #weights = make("td");

  constructor(readonly tensor: Tensor) {
    const { name, dtype, bytes } = tensor;
    const cells = [dtype, shapeWords(tensor), size(bytes)].map((text) => make("td", { textContent: text }));
    this.element = make("tr", {}, make("th", { scope: "row", textContent: name }), ...cells, this.#weights);
    this.element.toggleAttribute("data-warned", tensor.problems.length > 0);
  }

  show(counts: Counts): void {
    const drawing = make("div", { className: "histogram", ariaHidden: "true" });
    const total = all(counts);
    for (const [key] of VALUES) {
      const part = make("span", { className: key });
      part.style.flexGrow = String(total === 0 ? 0 : counts[key] / total);
      drawing.append(part);
    }
    this.#weights.replaceChildren(drawing, shares(counts));
  }
}

/** Shares of the values, in words. */
export function shares(counts: Counts): string {
  const total = all(counts);
  return VALUES.map(([key, name]) => `${name}: ${percent(counts[key], total)}`).join(" · ");
}

function percent(count: number, total: number): string {
  return total === 0 ? "–" : `${((100 * count) / total).toFixed(1)} %`;
}

function all({ minus, zero, plus, invalid }: Counts): number {
  return minus + zero + plus + invalid;
}

/** The shape of the matrix, and of its packed bytes if that is another. */
function shapeWords(tensor: Tensor): string {
  const [matrix, stored] = [matrixShape(tensor), tensor.shape].map((shape) => shape.join(" × ") || "scalar");
  return matrix === stored ? `${matrix}` : `${matrix} (packed ${stored})`;
}

/** The last values of something, as a line. */

const SVG = "http://www.w3.org/2000/svg";

/** How many values are shown, and the height of the drawing in its own units. */
const PLACES = 32;
const HEIGHT = 20;

/** A line that grows to the left, scaled to its highest value. It says nothing that figures beside it do not. */
export class Sparkline {
  readonly element = made("svg", {
    class: "spark",
    viewBox: `0 0 ${PLACES - 1} ${HEIGHT}`,
    preserveAspectRatio: "none",
    "aria-hidden": "true",
  });
  readonly #area = made("path", { class: "area" });
  readonly #line = made("path", { class: "line" });
  #values: number[] = [];

  constructor() {
    this.element.append(this.#area, this.#line);
  }

  clear(): void {
    this.#values = [];
    this.#draw();
  }

  /** Shows one more value, if there is one. */
  add(value: number | undefined): void {
    if (value === undefined || !Number.isFinite(value)) return;
    this.#values = [...this.#values, value].slice(-PLACES);
    this.#draw();
  }

  #draw(): void {
    const most = Math.max(...this.#values, Number.MIN_VALUE);
    const first = PLACES - this.#values.length;
    // Half a unit at both ends, so that the line is not cut.
    const height = (value: number) => (HEIGHT - 0.5 - (value / most) * (HEIGHT - 1)).toFixed(2);
    const points = this.#values.map(
      (value, place) => `H${first + place - 0.5}V${height(value)}H${first + place}`,
    );
    const [begin] = this.#values;
    const line = begin === undefined ? "" : `M${first - 1} ${height(begin)}${points.join("")}`;
    this.#line.setAttribute("d", line);
    this.#area.setAttribute("d", line && `${line}V${HEIGHT}H${first - 1}z`);
  }
}

function made(name: string, attributes: Record<string, string>): SVGElement {
  const element = document.createElementNS(SVG, name);
  for (const [attribute, value] of Object.entries(attributes)) element.setAttribute(attribute, value);
  return element as SVGElement;
}

/** The requests that run and wait, each with a button that cancels it. */

import { duration } from "../chart.js";
import { button, element, make } from "../elements.js";

/** A request as the server lists it. */
export interface ListedRequest {
  readonly id: string;
  readonly request_id: string;
  readonly model: string;
  readonly api: string;
  readonly state: string;
  readonly texts: number;
  readonly tokens: number;
  readonly age_seconds: number;
}

/** The table. Rows stay while their requests do, so that their buttons keep the focus. */
export class RequestTable {
  readonly #table = element("requests", HTMLTableElement);
  readonly #body = element("request-rows", HTMLTableSectionElement);
  readonly #none = element("no-requests", HTMLElement);
  readonly #cancel: (id: string) => void;
  readonly #rows = new Map<string, { row: HTMLTableRowElement; cells: HTMLTableCellElement[] }>();

  constructor(cancel: (id: string) => void) {
    this.#cancel = cancel;
  }

  show(requests: readonly ListedRequest[]): void {
    const ids = new Set(requests.map(({ id }) => id));
    for (const [id, { row }] of this.#rows) {
      if (ids.has(id)) continue;
      row.remove();
      this.#rows.delete(id);
    }
    for (const request of requests) this.#update(request);
    this.#table.hidden = requests.length === 0;
    this.#none.hidden = requests.length > 0;
  }

  #update(request: ListedRequest): void {
    const { cells } = this.#rows.get(request.id) ?? this.#add(request);
    const { state, texts, tokens, age_seconds } = request;
    const values = [state, texts > 1 ? `${tokens} in ${texts} texts` : String(tokens)];
    for (const [at, value] of [...values, duration(1000 * age_seconds)].entries()) {
      const cell = cells[at];
      if (cell !== undefined) cell.textContent = value;
    }
  }

  #add({ id, request_id, model, api }: ListedRequest) {
    const cell = (label: string, ...contents: (Node | string)[]) => {
      const made = make("td", {}, ...contents);
      made.dataset.label = label;
      return made;
    };
    const cells = ["State", "Tokens", "Age"].map((label) => cell(label));
    const name = make("th", { scope: "row", textContent: request_id });
    const cancel = button("Cancel", () => this.#cancel(id), `Cancel ${request_id}`);
    const row = make(
      "tr",
      {},
      name,
      cell("Model", model),
      cell("API", api),
      ...cells,
      make("td", {}, cancel),
    );
    this.#body.append(row);
    const added = { row, cells };
    this.#rows.set(id, added);
    return added;
  }
}

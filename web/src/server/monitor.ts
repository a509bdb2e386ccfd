/** Live metrics and requests of the server. */

import { element } from "../elements.js";
import { EngineFigures, type FigureMetrics } from "../engine-figures.js";
import { explain } from "../explain.js";
import { send } from "./api.js";
import { OperationBar } from "./operation-bar.js";
import { figures, parse } from "./prometheus.js";
import { type ListedRequest, RequestTable } from "./request-table.js";

/** Interval of updates. */
const INTERVAL_MS = 500;

/** Polls the server while the page is visible. */
export class Monitor {
  readonly #figures = new EngineFigures(element("engine-figures", HTMLDListElement));
  readonly #operations = new OperationBar();
  readonly #table = new RequestTable((id) => void this.#cancel(id));
  readonly #summary = element("server-summary", HTMLElement);
  readonly #status = element("monitor-status", HTMLElement);
  #updates = 0;

  constructor() {
    element("engine-figures", HTMLDListElement).append(this.#operations.element);
  }

  /** Updates until the page is closed. */
  async run(): Promise<never> {
    for (;;) {
      if (document.visibilityState === "visible") await this.#update();
      await new Promise((resolve) => setTimeout(resolve, INTERVAL_MS));
    }
  }

  async #update(): Promise<void> {
    try {
      const [metrics, requests] = await Promise.all([send("/metrics"), send("/ui/requests")]);
      const samples = parse(await metrics.text());
      const now = figures(samples);
      const { data } = (await requests.json()) as { data: ListedRequest[] };
      this.#figures.show(this, now);
      this.#operations.show(samples);
      this.#table.show(data);
      this.#summary.textContent = inWords(now);
      this.#report("");
      this.#updates += 1;
      this.#summary.dataset.updates = String(this.#updates);
    } catch (error) {
      this.#report(`The server's metrics cannot be read: ${explain(error)}`);
    }
  }

  async #cancel(id: string): Promise<void> {
    try {
      await send(`/ui/requests/${encodeURIComponent(id)}`, { method: "DELETE" });
      await this.#update();
    } catch (error) {
      this.#report(explain(error));
    }
  }

  #report(words: string): void {
    if (this.#status.textContent === words) return;
    this.#status.textContent = words;
    this.#status.dataset.state = words === "" ? "idle" : "failed";
  }
}

function inWords({ running, waiting }: FigureMetrics): string {
  return `${running} running, ${waiting} waiting`;
}

/** The view of a checkpoint: its tensors, the ternary weights by value, and what looks wrong. */

import type { Activity } from "../activity.js";
import type { Choice } from "../current-model.js";
import { element, make } from "../elements.js";
import { explain } from "../explain.js";
import { size } from "../figures.js";
import { chosenModel } from "../folders.js";
import { type Checkpoint, readCheckpoint } from "./checkpoint.js";
import type { Counts } from "./codes.js";
import { modelFiles } from "./files.js";
import { countTensor, isCounted, oddities, parameters, sum } from "./findings.js";
import { shares, TensorRow } from "./tensor-row.js";

/** Opens checkpoints and counts their weights. */
export class Explorer {
  readonly #activity: Activity;
  readonly #status = element("explorer-status", HTMLElement);
  readonly #warnings = element("explorer-warnings", HTMLUListElement);
  /** Warnings by their words, with the tensors that have them. */
  readonly #warned = new Map<string, { readonly item: HTMLLIElement; readonly tensors: string[] }>();
  readonly #facts = element("explorer-facts", HTMLElement);
  readonly #bar = element("explorer-bar", HTMLProgressElement);
  readonly #rows = element("explorer-rows", HTMLTableSectionElement);

  constructor(activity: Activity) {
    this.#activity = activity;
    for (const id of ["explorer-folder", "explorer-files"]) {
      const input = element(id, HTMLInputElement);
      const take = () => {
        const chosen = input.files?.length ? chosenModel(input.files) : undefined;
        // The same files can be chosen again.
        input.value = "";
        if (chosen) void this.open(chosen);
      };
      input.addEventListener("change", take);
      take(); // what was chosen before this code was fetched
    }
  }

  /** Opens the files of a model. */
  async open(choice: Choice): Promise<void> {
    await this.#activity.stop();
    this.#activity.start(async (signal) => {
      try {
        await this.#explore(choice, signal);
      } catch (error) {
        if (signal.aborted) this.#report("idle", "Stopped. Only some matrices are counted.");
        else this.#report("failed", explain(error));
      }
      this.#bar.hidden = true;
    });
  }

  async #explore(choice: Choice, signal: AbortSignal): Promise<void> {
    this.#clear();
    this.#report("running", "Reading the headers…");
    const checkpoint = await readCheckpoint(await modelFiles(choice));
    const rows = this.#list(checkpoint);
    const { counted, bytes, found } = await this.#count(rows, signal);
    const words = counted.length === 0 ? "" : ` ${shares(sum(counted))}.`;
    this.#report("done", `${matrices(counted.length)}, ${size(bytes)} read.${words}${warned(found)}`);
  }

  #clear(): void {
    this.#warned.clear();
    this.#warnings.replaceChildren();
    this.#rows.replaceChildren();
    this.#facts.textContent = "";
    element("explorer-table", HTMLTableElement).hidden = true;
  }

  /** Shows what the headers say. */
  #list({ name, format, tensors, problems }: Checkpoint): TensorRow[] {
    const bytes = tensors.reduce((all, tensor) => all + tensor.bytes, 0);
    const facts = [
      name,
      format,
      `${tensors.length} tensors`,
      `${millions(parameters(tensors))} parameters`,
      size(bytes),
    ];
    this.#facts.textContent = facts.join(" · ");
    for (const problem of problems) this.#warn(problem);
    const rows = tensors.map((tensor) => new TensorRow(tensor));
    this.#rows.replaceChildren(...rows.map((row) => row.element));
    element("explorer-table", HTMLTableElement).hidden = false;
    for (const { tensor } of rows) for (const problem of tensor.problems) this.#warn(problem, tensor.name);
    return rows;
  }

  /** Counts the weights of every ternary matrix, one after another. */
  async #count(rows: readonly TensorRow[], signal: AbortSignal) {
    const chosen = rows.filter(({ tensor }) => isCounted(tensor));
    const total = chosen.reduce((all, { tensor }) => all + tensor.bytes, 0);
    const counted: Counts[] = [];
    let [bytes, done] = [0, 0];
    this.#bar.hidden = false;
    for (const row of chosen) {
      this.#report("running", `Counting the weights of ${row.tensor.name}…`);
      const counts = await countTensor(row.tensor, signal, (read) => {
        bytes += read;
        this.#bar.value = total === 0 ? 1 : (done + read) / total;
      });
      done += row.tensor.bytes;
      this.#bar.value = done / total;
      if (counts === undefined) continue;
      row.show(counts);
      counted.push(counts);
      for (const oddity of oddities(counts)) this.#warn(oddity, row.tensor.name);
    }
    return { counted, bytes, found: this.#warnings.children.length };
  }

  /** Adds a warning; one that several tensors have names the first of them. */
  #warn(words: string, tensor?: string): void {
    const warned = this.#warned.get(words) ?? { item: make("li"), tensors: [] };
    this.#warned.set(words, warned);
    if (tensor !== undefined) warned.tensors.push(tensor);
    const [first, ...more] = warned.tensors;
    const others = more.length === 0 ? "" : ` and ${more.length} more`;
    warned.item.textContent = first === undefined ? words : `${first}${others}: ${words}`;
    this.#warnings.append(warned.item);
  }

  #report(state: string, words: string): void {
    this.#status.dataset.state = state;
    this.#status.textContent = words;
  }
}

function matrices(count: number): string {
  return count === 0 ? "No ternary matrix" : `${count} ternary ${count === 1 ? "matrix" : "matrices"}`;
}

function warned(count: number): string {
  return count === 0 ? "" : ` ${count} ${count === 1 ? "warning" : "warnings"}.`;
}

function millions(count: number): string {
  return count < 1e9 ? `${(count / 1e6).toFixed(1)} million` : `${(count / 1e9).toFixed(2)} billion`;
}

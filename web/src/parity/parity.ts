/** The view of parity: every backend of this browser beside the reference implementation. */

import expected from "virtual:parity";
import { type Backend, load, type Model, SetunError, type TextDelta } from "setun";
import type { Activity } from "../activity.js";
import { element, make } from "../elements.js";
import { explain } from "../explain.js";
import { compare, digest, type Step } from "./compare.js";

const BACKENDS = ["scalar", "simd128", "relaxed", "webgpu"] as const satisfies readonly Backend[];

/** A row of the table. */
interface Row {
  readonly backend: string;
  readonly build: string;
  readonly selfTest: string;
  readonly bits: string;
  readonly hash: string;
  readonly verdict: "equal" | "differs" | "absent";
}

/** Runs the comparison. */
export class Parity {
  readonly #activity: Activity;
  readonly #status = element("parity-status", HTMLElement);
  readonly #rows = element("parity-rows", HTMLTableSectionElement);

  constructor(activity: Activity) {
    this.#activity = activity;
  }

  run(): void {
    this.#activity.start(async (signal) => {
      try {
        await this.#compareAll(signal);
      } catch (error) {
        this.#report(signal.aborted ? "idle" : "failed", signal.aborted ? "Stopped." : explain(error));
      }
    });
  }

  async #compareAll(signal: AbortSignal): Promise<void> {
    element("parity-table", HTMLTableElement).hidden = false;
    const hash = await digest(expected.steps);
    const reference = {
      build: "when this page was built",
      selfTest: "",
      bits: `${expected.steps.length} tokens`,
    };
    this.#rows.replaceChildren(rowOf({ backend: "reference", ...reference, hash, verdict: "equal" }));
    let differing = 0;
    for (const backend of BACKENDS) {
      this.#report("running", `Testing ${backend}…`);
      const row = await rowFor(backend, signal);
      this.#rows.append(rowOf(row));
      if (row.verdict === "differs") differing += 1;
    }
    const words = "Every backend of the CPU gives the bits of the reference implementation.";
    if (differing === 0) this.#report("done", words);
    else this.#report("failed", `${differing} of the backends failed. Please report it.`);
  }

  #report(state: string, words: string): void {
    this.#status.dataset.state = state;
    this.#status.textContent = words;
  }
}

async function rowFor(backend: Backend, signal: AbortSignal): Promise<Row> {
  let model: Model;
  try {
    model = await load(undefined, { backend, signal });
  } catch (error) {
    if (!(error instanceof SetunError) || error.code !== "backend-unavailable") throw error;
    return { backend, build: "–", selfTest: "–", bits: "not available here", hash: "–", verdict: "absent" };
  }
  try {
    const { passed, reason } = await model.selfTest();
    const options = { temperature: 0, maxTokens: expected.maxTokens, logprobs: true, signal };
    const steps: Step[] = [];
    for await (const step of model.generate(expected.prompt, options)) steps.push(withLogprob(step));
    const { isEqual, words } = compare(steps, expected.steps);
    const isExact = model.info.backend === "cpu";
    return {
      backend: `${model.info.backend} · ${model.info.level}`,
      build: `${model.info.build}, ${model.info.threads === 1 ? "1 thread" : `${model.info.threads} threads`}`,
      selfTest: passed ? "passed" : `failed: ${reason}`,
      bits: words,
      hash: await digest(steps),
      // A GPU need not be bit-equal; its row says how far it is.
      verdict: passed && (isEqual || !isExact) ? "equal" : "differs",
    };
  } finally {
    await model.dispose();
  }
}

function withLogprob({ token, logprob }: TextDelta): Step {
  return { token, logprob: logprob ?? Number.NaN };
}

function rowOf({ backend, build, selfTest, bits, hash, verdict }: Row): HTMLTableRowElement {
  const name = make("th", { scope: "row", textContent: backend });
  const cells = [
    labelled("Build", build),
    labelled("Self-test", selfTest),
    labelled("Bits", bits),
    labelled("Hash", make("code", { textContent: hash })),
  ];
  const row = make("tr", {}, name, ...cells);
  row.dataset.verdict = verdict;
  return row;
}

/** A cell that has its column's name where the columns are one above the other. */
function labelled(label: string, content: string | Node): HTMLTableCellElement {
  const cell = make("td", {}, ...(content === "" ? [] : [content]));
  cell.dataset.label = label;
  return cell;
}

/** Availability of WebGPU. */

import { element } from "./elements.js";

/** What was found, in words. */
export interface FoundGpu {
  readonly isThere: boolean;
  /** Whether it only plays a GPU, in software. */
  readonly isSoftware: boolean;
  readonly words: string;
}

/** Enables the WebGPU option if there is a GPU, else shows the reason. */
export async function offerGpu(): Promise<void> {
  const hint = element("gpu", HTMLElement);
  const found = await lookForGpu();
  hint.textContent = found.words;
  hint.dataset.gpu = found.isThere ? "ready" : "absent";
  const option = document.querySelector<HTMLOptionElement>('#backend option[value="webgpu"]');
  if (option) option.disabled = !found.isThere;
}

let found: Promise<FoundGpu> | undefined;

/** Looks for a GPU, once. */
export function lookForGpu(): Promise<FoundGpu> {
  found ??= look();
  return found;
}

async function look(): Promise<FoundGpu> {
  const none = { isThere: false, isSoftware: false };
  if (navigator.gpu === undefined) {
    const words = isSecureContext ? "this browser has no WebGPU." : "WebGPU needs a secure page (https).";
    return { ...none, words: `No GPU: ${words}` };
  }
  const adapter = await navigator.gpu
    .requestAdapter({ powerPreference: "high-performance" })
    .catch(() => null);
  if (adapter === null) {
    const words = "No GPU: the browser finds none. Check graphics acceleration in its settings.";
    return { ...none, words };
  }
  const { description, vendor, architecture, isFallbackAdapter } = adapter.info ?? {};
  const name = description || `${vendor} ${architecture}`.trim() || "without a name";
  const pace = isFallbackAdapter ? ", a software adapter, slow" : "";
  return { isThere: true, isSoftware: isFallbackAdapter === true, words: `GPU: ${name}${pace}.` };
}

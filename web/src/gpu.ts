/** Whether there is a GPU to choose. */

import { element } from "./elements.js";

/** Lets WebGPU be chosen where it is there, and says why where it is not. */
export async function offerGpu(): Promise<void> {
  const hint = element("gpu", HTMLElement);
  const found = await lookForGpu();
  hint.textContent = found.words;
  hint.dataset.gpu = found.isThere ? "ready" : "absent";
  const option = document.querySelector<HTMLOptionElement>('#backend option[value="webgpu"]');
  if (option) option.disabled = !found.isThere;
}

async function lookForGpu(): Promise<{ isThere: boolean; words: string }> {
  if (navigator.gpu === undefined) {
    const words = isSecureContext ? "this browser has no WebGPU." : "WebGPU needs a secure page (https).";
    return { isThere: false, words: `No GPU: ${words}` };
  }
  const adapter = await navigator.gpu
    .requestAdapter({ powerPreference: "high-performance" })
    .catch(() => null);
  if (adapter === null) {
    const words = "No GPU: the browser finds none. Is graphics acceleration on in its settings?";
    return { isThere: false, words };
  }
  const { description, vendor, architecture, isFallbackAdapter } = adapter.info ?? {};
  const name = description || `${vendor} ${architecture}`.trim() || "without a name";
  const pace = isFallbackAdapter ? ", which is software, and slow" : "";
  return { isThere: true, words: `GPU: ${name}${pace}.` };
}

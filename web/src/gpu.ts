/** Availability of WebGPU. */

import { element } from "./elements.js";

/** Enables the WebGPU option if there is a GPU, else shows the reason. */
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
    const words = "No GPU: the browser finds none. Check graphics acceleration in its settings.";
    return { isThere: false, words };
  }
  const { description, vendor, architecture, isFallbackAdapter } = adapter.info ?? {};
  const name = description || `${vendor} ${architecture}`.trim() || "without a name";
  const pace = isFallbackAdapter ? ", a software adapter, slow" : "";
  return { isThere: true, words: `GPU: ${name}${pace}.` };
}

/** A button that copies a text. */

import { button } from "../elements.js";

/** Time for which the outcome is shown. */
const SHOWN_MS = 2000;

export function copyButton(words: string, contents: () => string): HTMLButtonElement {
  const made = button(words, async () => {
    try {
      await navigator.clipboard.writeText(contents());
      made.textContent = "Copied";
    } catch {
      made.textContent = "The browser refused";
    }
    setTimeout(() => {
      made.textContent = words;
    }, SHOWN_MS);
  });
  return made;
}

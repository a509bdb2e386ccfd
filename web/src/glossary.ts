/** Terms that explain themselves: by pointer, tap and keyboard. */

import { button } from "./elements.js";

/** Space between a term and its definition. */
const GAP_PX = 6;

/** Time in which the pointer may move from a term to its definition. */
const LEAVE_MS = 200;

/** The definition that is shown. */
let shown: HTMLElement | undefined;
let leaving: ReturnType<typeof setTimeout> | undefined;

/** Whether a definition is shown, which Escape closes. */
export function definitionIsShown(): boolean {
  return shown !== undefined;
}

/** Lets the terms of the page show their definitions. */
export function listenToTerms(): void {
  // Without popovers the style hides them, and screen readers still read the descriptions.
  if (!("showPopover" in HTMLElement.prototype)) return;
  document.addEventListener("click", ({ target }) => open(termOf(target)));
  document.addEventListener("pointerover", ({ target, pointerType }) => {
    if (pointerType === "touch") return;
    if (shown?.contains(target as Node)) clearTimeout(leaving);
    open(termOf(target));
  });
  document.addEventListener("pointerout", ({ target, pointerType }) => {
    const isLeft = termOf(target) !== undefined || shown?.contains(target as Node);
    if (pointerType === "touch" || !isLeft) return;
    clearTimeout(leaving);
    leaving = setTimeout(() => shown?.hidePopover(), LEAVE_MS);
  });
  for (const definition of document.querySelectorAll<HTMLElement>(".definition")) {
    definition.addEventListener("toggle", () => {
      if (shown === definition && !definition.matches(":popover-open")) shown = undefined;
    });
  }
}

/** A button that shows a definition, where the page has it; else the word alone. */
export function term(name: string, word: string): Node {
  const id = `term-${name}`;
  if (document.getElementById(id) === null) return document.createTextNode(word);
  const made = button(word, () => undefined);
  made.className = "term";
  made.setAttribute("aria-describedby", id);
  return made;
}

function termOf(target: EventTarget | null): HTMLElement | undefined {
  return target instanceof Element ? (target.closest<HTMLElement>(".term") ?? undefined) : undefined;
}

/** Shows the definition of a term below it, or above where there is no room. */
function open(term: HTMLElement | undefined): void {
  const definition = term && document.getElementById(term.getAttribute("aria-describedby") ?? "");
  if (!definition) return;
  clearTimeout(leaving);
  if (!definition.matches(":popover-open")) definition.showPopover();
  shown = definition;
  const [place, own] = [term.getBoundingClientRect(), definition.getBoundingClientRect()];
  const left = Math.max(GAP_PX, Math.min(place.left, document.body.clientWidth - own.width - GAP_PX));
  const below = place.bottom + GAP_PX;
  const isBelow = below + own.height <= window.innerHeight || place.top < own.height + GAP_PX;
  const top = isBelow ? below : place.top - own.height - GAP_PX;
  Object.assign(definition.style, { left: `${left}px`, top: `${top}px` });
}

/** The first visit, on which a story writes itself. */

import { savesData } from "./download-time.js";

const VISITED = "setun-visited";

/** Whether a story is to write itself: once, and not where the visitor saves data. */
export function wantsFirstStory(): boolean {
  return !savesData() && !wasHere();
}

/** Ends the first visit. */
export function endFirstVisit(): void {
  try {
    localStorage.setItem(VISITED, "1");
  } catch {
    // A browser that keeps nothing has first visits alone.
  }
}

function wasHere(): boolean {
  try {
    return localStorage.getItem(VISITED) !== null;
  } catch {
    return false;
  }
}

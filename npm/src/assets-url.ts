/** Addresses below the option `assetsUrl`. */

import { documentBase } from "./document-base.js";

/** The address of a file, by its path in the package. */
export function assetsAt(assetsUrl: string): (path: string) => URL {
  const base = new URL(assetsUrl, documentBase());
  if (!base.pathname.endsWith("/")) base.pathname += "/";
  return (path) => new URL(path, base);
}

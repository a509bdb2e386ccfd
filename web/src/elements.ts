/** The page's parts, by name. */

/** An element that the page has; its absence is a defect of the page. */
export function element<Type extends Element>(id: string, type: new () => Type): Type {
  const found = document.getElementById(id);
  if (found instanceof type) return found;
  throw new Error(`the page has no ${type.name} called "${id}"`);
}

/** Says something in an element. */
export function say(id: string, text: string): void {
  element(id, HTMLElement).textContent = text;
}

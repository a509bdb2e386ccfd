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

/** A new element with properties and contents. */
export function make<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  properties: Partial<HTMLElementTagNameMap[Name]> = {},
  ...contents: (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...contents);
  return made;
}

/** A button that submits nothing. */
export function button(text: string, act: () => void, label?: string): HTMLButtonElement {
  const made = make("button", { type: "button", textContent: text });
  if (label !== undefined) made.ariaLabel = label;
  made.addEventListener("click", act);
  return made;
}

/** Saves a text as a file of the visitor's. */
export function saveFile(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  make("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

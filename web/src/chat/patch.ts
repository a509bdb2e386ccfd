/** Changes of elements in place, so that focus, selection and scroll positions stay. */

/** Makes the nodes of `parent` after the first `from` equal to `wanted`. Buttons stay as they are. */
export function patchChildren(parent: Node, wanted: readonly Node[], from = 0): void {
  for (const [at, node] of wanted.entries()) {
    const there = parent.childNodes[from + at];
    if (there === undefined) parent.appendChild(node);
    else if (!patch(there, node)) parent.replaceChild(node, there);
  }
  while (parent.childNodes.length > from + wanted.length) parent.lastChild?.remove();
}

/** Makes a node equal to another one of its kind; `false` for another kind. */
function patch(there: Node, wanted: Node): boolean {
  if (there.nodeName !== wanted.nodeName) return false;
  if (there instanceof Text && wanted instanceof Text) patchText(there, wanted.data);
  if (!(there instanceof Element && wanted instanceof Element) || there.nodeName === "BUTTON") return true;
  for (const name of there.getAttributeNames()) if (!wanted.hasAttribute(name)) there.removeAttribute(name);
  for (const { name, value } of wanted.attributes) {
    if (there.getAttribute(name) !== value) there.setAttribute(name, value);
  }
  patchChildren(there, [...wanted.childNodes]);
  return true;
}

/** A selection in the text stays if the text grows. */
function patchText(there: Text, text: string): void {
  if (there.data === text) return;
  if (text.startsWith(there.data)) there.appendData(text.slice(there.data.length));
  else there.data = text;
}

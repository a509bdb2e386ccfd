/** Addresses, as far as names in the store depend on them. */

/** An address taken apart, as it is written. */
export interface AddressParts {
  /** Host, and the port where one is written, in small letters. */
  readonly authority: string;
  readonly path: string;
  readonly query?: string;
}

/** Takes an address apart; `undefined` if it is none of the web, or carries a name and password. */
export function addressParts(address: string): AddressParts | undefined {
  const found = /^https?:\/\/([^/?#@\s]+)(?=[/?#]|$)([^?#]*)(?:\?([^#]*))?/i.exec(address);
  if (found === null) return undefined;
  const [, authority = "", path = "", query = ""] = found;
  return { authority: asciiLower(authority), path, ...(query !== "" && { query }) };
}

/** As the other side does: letters beyond ASCII stay. */
function asciiLower(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

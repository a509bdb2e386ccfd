/** Base of relative addresses: of the document, or in a worker of the worker's script. */
export const documentBase = (): string => globalThis.document?.baseURI ?? globalThis.location.href;

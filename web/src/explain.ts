/** Errors in words. */

/** What an error says, with its code if it has one. */
export function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return "code" in error && typeof error.code === "string"
    ? `${error.message} (${error.code})`
    : error.message;
}

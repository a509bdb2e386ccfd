/** What a server tells of a file before its bytes come. */

import type { Answer } from "./answer.js";
import { Later } from "./faults.js";
import { expectStatus, type Http } from "./http.js";
import { retried } from "./retry.js";

/** What a server tells of a file. */
export interface Probe {
  /** Its size, where the page may see it. */
  readonly bytes: number | undefined;
  /** What the file is known by. */
  readonly identity: string | undefined;
  /** What its parts can be asked for on condition of. */
  readonly condition: string | undefined;
}

/** Asks for what comes before a file's bytes; `undefined` where there is no file. */
export function probe(http: Http, address: string): Promise<Probe | undefined> {
  return retried(http.settings, http.signal, () => probeOnce(http, address));
}

/** The same, without a second attempt. */
export async function probeOnce(http: Http, address: string): Promise<Probe | undefined> {
  const answer = await http.send(address, { head: true });
  const { isMissing, identity, condition, length } = answer;
  await answer.cancel();
  if (isMissing) return undefined;
  if (answer.status === 200 && length !== undefined) return { bytes: length, identity, condition };
  // Addresses that are signed are so for one method, and some servers know no other.
  if (answer.status !== 200 && ![400, 401, 403, 405, 501].includes(answer.status)) {
    await expectStatus(answer, [200]);
  }
  const part = await http.send(address, { start: 0, end: 1 }).catch((thrown: unknown) => {
    // Browsers refuse parts that are compressed, which some servers send nevertheless.
    if (!(answer.isCompressed && thrown instanceof Later)) throw thrown;
  });
  if (part === undefined) return { bytes: undefined, identity, condition };
  const found = ofPart(part);
  await part.cancel();
  if (part.isMissing) return undefined;
  if (found === undefined) await expectStatus(part, [200]);
  return found ?? { bytes: part.length, identity: part.identity, condition: part.condition };
}

function ofPart(answer: Answer): Probe | undefined {
  const { status, range, identity, condition } = answer;
  if (status === 206) return { bytes: range?.total, identity, condition };
  // A file without a byte has no first one.
  return status === 416 && range?.total === 0 ? { bytes: 0, identity, condition } : undefined;
}

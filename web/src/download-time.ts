/** Estimated and remaining time of downloads. */

import type { LoadProgress } from "setun";

/** What some browsers tell of the connection. */
interface Connection {
  /** Mbit/s. Browsers round it, and tell no more than {@link MAX_DOWNLINK}. */
  readonly downlink?: number;
  readonly saveData?: boolean;
}

const MAX_DOWNLINK = 10;

/** Bytes of the page's files that tell a rate. */
const MIN_RATE_BYTES = 20_000;

/** Time of a download after which its rate is known. */
const MEASURED_MS = 1500;

/** Whether the visitor asks pages for fewer bytes. */
export function savesData(): boolean {
  return connection().saveData === true || matchMedia("(prefers-reduced-data: reduce)").matches;
}

/**
 * Time of a download at the rate that the browser reports, or else at the rate of the page's own files. It is
 * `undefined` if there is neither.
 */
export function expectedTime(bytes: number): string | undefined {
  const { downlink = 0 } = connection();
  const [rate, isExact] = downlink > 0 ? [downlink, downlink < MAX_DOWNLINK] : [ownRate(), false];
  if (rate === undefined) return undefined;
  return `${isExact ? "about" : "at most"} ${timeWords((8 * bytes) / (1e6 * rate))}`;
}

/** Mbit/s of the page's own files, at least: so few bytes do not reach the rate of a long download. */
function ownRate(): number | undefined {
  const files = performance.getEntriesByType("resource") as PerformanceResourceTiming[];
  // What a cache or the service worker answers says nothing of the network.
  const sent = files.filter(({ transferSize, workerStart }) => transferSize > 0 && workerStart === 0);
  const bytes = sent.reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0);
  if (bytes < MIN_RATE_BYTES) return undefined;
  const began = Math.min(...sent.map(({ requestStart }) => requestStart));
  const milliseconds = Math.max(...sent.map(({ responseEnd }) => responseEnd)) - began;
  return milliseconds > 0 ? (8 * bytes) / (1e3 * milliseconds) : undefined;
}

/** The time that is left of a download, by its own rate. */
export class DownloadClock {
  #began: { readonly at: number; readonly bytes: number } | undefined;

  /** In words, as soon as it is known. */
  left({ phase, loadedBytes, totalBytes }: LoadProgress, now = performance.now()): string | undefined {
    if (phase !== "downloading" || totalBytes === undefined) return undefined;
    this.#began ??= { at: now, bytes: loadedBytes };
    const [elapsed, arrived] = [now - this.#began.at, loadedBytes - this.#began.bytes];
    if (elapsed < MEASURED_MS || arrived <= 0) return undefined;
    return `${timeWords(((totalBytes - loadedBytes) * elapsed) / arrived / 1000)} left`;
  }
}

/** Seconds in words. */
export function timeWords(seconds: number): string {
  if (seconds < 60) return "a minute";
  const minutes = Math.ceil(seconds / 60);
  if (minutes < 90) return `${minutes} minutes`;
  return `${Math.round(minutes / 60)} hours`;
}

function connection(): Connection {
  return (navigator as Navigator & { readonly connection?: Connection }).connection ?? {};
}

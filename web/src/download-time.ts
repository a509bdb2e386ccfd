/** Estimated and remaining time of downloads. */

import type { LoadProgress } from "setun";

/** What some browsers tell of the connection. */
interface Connection {
  /** Mbit/s. Browsers round it, and tell no more than {@link MAX_DOWNLINK}. */
  readonly downlink?: number;
  readonly saveData?: boolean;
}

const MAX_DOWNLINK = 10;

/** Time of a download after which its rate is known. */
const MEASURED_MS = 1500;

/** Whether the visitor asks pages for fewer bytes. */
export function savesData(): boolean {
  return connection().saveData === true || matchMedia("(prefers-reduced-data: reduce)").matches;
}

/** Time of a download by what the browser tells of the connection; without that, `undefined`. */
export function expectedTime(bytes: number): string | undefined {
  const { downlink = 0 } = connection();
  if (downlink <= 0) return undefined;
  const words = timeWords((8 * bytes) / (1e6 * downlink));
  return downlink < MAX_DOWNLINK ? `about ${words}` : `at most ${words}`;
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

/** Progress of loading: its phases, and how often it is reported. */

/**
 * A phase of loading. One may be absent, or come again after a lost connection, a failed GPU or a damaged copy.
 *
 * - `connecting`: files are looked up, and the engine starts
 * - `waiting`: another tab or worker downloads the same model; the bytes are those that it has received
 * - `downloading`: bytes arrive, and the engine reads them meanwhile
 * - `packing`: the engine reads and packs files that are stored or in memory
 * - `checking`: the download is verified and named in the store, or a stored copy is compared with its hashes
 * - `ready`: the last one
 */
export type LoadPhase = "connecting" | "waiting" | "downloading" | "packing" | "checking" | "ready";

/**
 * Progress of loading a model, together with its draft model. It never runs back within a phase: bytes that come again,
 * after a lost connection or a wrong chunk, count once.
 */
export interface LoadProgress {
  /** What is done now. */
  readonly phase: LoadPhase;
  /** Bytes of this phase so far. */
  readonly loadedBytes: number;
  /** Bytes of all files; absent while a server does not report, and while further files turn up. */
  readonly totalBytes?: number;
  /** The file being read. */
  readonly file: string;
  /** True if all of it is in the browser's store already and nothing is downloaded. */
  readonly fromStore?: boolean;
  /** Files of the browser's store that were damaged and are downloaded again, each as a sentence with the reason. */
  readonly damaged?: readonly string[];
}

/** Takes progress. */
export type OnProgress = (progress: LoadProgress) => void;

/** The most that a phase has reported. */
interface Reported {
  readonly bytes: number;
  readonly share: number;
}

/**
 * Reports that never run back within a phase. Bytes that were lost are not taken back. Where a total has grown, it is
 * left out until its share is ahead again.
 */
export function steadyProgress(send: OnProgress): OnProgress {
  const most = new Map<LoadPhase, Reported>();
  return (progress) => {
    const { totalBytes, ...rest } = progress;
    const before = most.get(progress.phase) ?? { bytes: 0, share: 0 };
    const loadedBytes = Math.min(Math.max(progress.loadedBytes, before.bytes), totalBytes ?? Infinity);
    const share = totalBytes === undefined || totalBytes === 0 ? 0 : loadedBytes / totalBytes;
    most.set(progress.phase, { bytes: loadedBytes, share: Math.max(share, before.share) });
    const isAhead = totalBytes !== undefined && share >= before.share;
    send({ ...rest, loadedBytes, ...(isAhead && { totalBytes }) });
  };
}

/** Minimum interval of reports of one phase in milliseconds. */
const INTERVAL_MS = 100;

/** Reports the begin of each phase at once, and what follows at intervals. */
export class ProgressReporter {
  readonly #send: OnProgress;
  #last: LoadProgress | undefined;
  #sentAt = 0;

  constructor(send: OnProgress) {
    this.#send = send;
  }

  readonly report: OnProgress = (progress) => {
    const time = performance.now();
    const isDue = progress.phase !== this.#last?.phase || time - this.#sentAt >= INTERVAL_MS;
    this.#last = progress;
    if (!isDue) return;
    this.#sentAt = time;
    this.#send(progress);
  };

  /** Reports the last phase. */
  ready(): void {
    if (this.#last === undefined) return;
    const { loadedBytes, totalBytes = loadedBytes } = this.#last;
    this.report({ ...this.#last, phase: "ready", loadedBytes: totalBytes });
  }
}

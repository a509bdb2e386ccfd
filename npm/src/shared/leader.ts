/** A leader: the tab that runs the model, for all tabs that have joined. */

import { toWire } from "../errors.js";
import type { Opened } from "../load.js";
import type { LoadProgress } from "../load-progress.js";
import type { Announcement, Channel, FromLeader, LeaderPort, Place } from "./ports.js";
import { aborted, channelPort } from "./ports.js";
import { RelayedTab } from "./relay.js";

/** Loads the model unless the signal aborts. Reports progress, and a failure of the model once it runs. */
export type OpenForAll = (
  signal: AbortSignal,
  onProgress: (progress: LoadProgress) => void,
  onFailure: (error: Error) => void,
) => Promise<Opened>;

/** A tab that has joined. */
interface Joined {
  readonly port: LeaderPort;
  /** Absent while the model loads. */
  relayed: RelayedTab | undefined;
}

/** Runs one model from its load to its end. */
export class Leader {
  readonly #id = crypto.randomUUID();
  readonly #place: Place;
  readonly #name: string;
  readonly #hub: Channel;
  readonly #tabs = new Map<string, Joined>();
  readonly #end = new AbortController();
  #opened: Opened | undefined;

  /** `name` is that of the model. */
  constructor(place: Place, name: string) {
    this.#place = place;
    this.#name = name;
    this.#hub = place.openChannel(name);
    this.#hub.onmessage = ({ data }: MessageEvent<Announcement>) => {
      if (data.type === "who") this.#announce();
      else if (data.type === "joins" && data.leader === this.#id) this.#admit(data.tab);
    };
  }

  /** Adds a tab, such as the leader's own. */
  accept(tab: string, port: LeaderPort): void {
    const joined: Joined = { port, relayed: undefined };
    this.#tabs.set(tab, joined);
    this.#introduce(joined);
  }

  /** Ends the requests of a tab. Without tabs the leader ends. */
  drop(tab: string): void {
    const joined = this.#tabs.get(tab);
    this.#tabs.delete(tab);
    joined?.relayed?.end();
    joined?.port.close();
    if (this.#tabs.size === 0) this.end();
  }

  /**
   * Loads the model and serves it until the end. Only a failure of the load rejects, which concerns this tab alone: the
   * next one tries.
   */
  async run(open: OpenForAll): Promise<void> {
    this.#announce();
    try {
      const progress = (progress: LoadProgress) => this.#tell({ type: "leader-loads", progress });
      const opening = open(this.#end.signal, progress, (error) => this.#fail(error));
      // A page that is frozen while it loads must not wait: nothing would come, and no other tab could lead.
      await Promise.race([opening, aborted(this.#end.signal)]);
      if (this.#end.signal.aborted) return closeLater(opening);
      this.#opened = await opening;
      for (const joined of this.#tabs.values()) this.#introduce(joined);
      await aborted(this.#end.signal);
    } finally {
      this.end();
    }
  }

  /** Ends the model. Another tab may lead then. */
  end(): void {
    if (this.#end.signal.aborted) return;
    this.#hub.onmessage = null;
    this.#hub.close();
    for (const { port } of this.#tabs.values()) port.close();
    this.#tabs.clear();
    this.#opened?.connection.close();
    this.#end.abort();
  }

  /** Ends the model for all tabs. */
  #fail(error: Error): void {
    if (this.#opened === undefined) return;
    this.#tell({ type: "leader-failed", error: toWire(error) });
    // Ports in this tab deliver after this task.
    setTimeout(() => this.end());
  }

  #announce(): void {
    this.#hub.postMessage({ type: "leads", leader: this.#id } satisfies Announcement);
  }

  #admit(tab: string): void {
    if (this.#tabs.has(tab)) return;
    this.accept(tab, channelPort(this.#place.openChannel(channelName(this.#name, this.#id, tab))));
    // A tab holds a lock as long as it lives.
    this.#place
      .withLock(lockOfTab(this.#name, tab), this.#end.signal, async () => this.drop(tab))
      .catch(() => undefined);
  }

  #introduce(joined: Joined): void {
    if (this.#opened === undefined) return;
    const { connection, info, report } = this.#opened;
    joined.relayed = new RelayedTab(joined.port, connection);
    joined.port.send({ type: "leader-opened", info, report });
  }

  #tell(message: FromLeader): void {
    for (const { port } of this.#tabs.values()) port.send(message);
  }
}

/** Closes a model that nobody needs any more, when it is there. */
function closeLater(opening: Promise<Opened>): void {
  opening.then(({ connection }) => connection.close()).catch(() => undefined);
}

/** Name of the channel between a tab and a leader. */
export function channelName(model: string, leader: string, tab: string): string {
  return `${model}:${leader}:${tab}`;
}

/** Name of the lock that a tab holds. */
export function lockOfTab(model: string, tab: string): string {
  return `${model}:${tab}`;
}

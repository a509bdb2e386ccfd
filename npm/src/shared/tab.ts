/** A tab that uses a shared model: it follows the leader, waits to lead, and leads. */

import { fromWire } from "../errors.js";
import type { LoadProgress } from "../load-progress.js";
import type { FromHost, ToHost } from "../protocol.js";
import { channelName, Leader, lockOfTab, type OpenForAll } from "./leader.js";
import type { Ledger } from "./ledger.js";
import type { Announcement, Channel, FromLeader, Place, TabPort } from "./ports.js";
import { aborted, channelPort, portPair } from "./ports.js";

/** What a tab hears. */
export interface TabEvents {
  /** The model takes requests, for the first time or in another tab. */
  opened(message: Extract<FromLeader, { type: "leader-opened" }>): void;
  /** The model loads: here, or in another tab. */
  loads(progress: LoadProgress): void;
  received(message: FromHost): void;
  /** The model has failed, or this tab could not load it. */
  failed(error: unknown): void;
}

/** One use of a shared model. */
export class Tab {
  readonly #id = crypto.randomUUID();
  readonly #place: Place;
  readonly #name: string;
  readonly #ledger: Ledger;
  readonly #open: OpenForAll;
  readonly #events: TabEvents;
  readonly #hub: Channel;
  readonly #left = new AbortController();
  /** Ends the wait for leadership. */
  #candidacy: AbortController | undefined;
  #standing: Promise<void> | undefined;
  #leader: Leader | undefined;
  #following: string | undefined;
  #port: TabPort | undefined;
  #isOpen = false;

  /** `name` is that of the model. */
  constructor(place: Place, name: string, ledger: Ledger, open: OpenForAll, events: TabEvents) {
    this.#place = place;
    this.#name = name;
    this.#ledger = ledger;
    this.#open = open;
    this.#events = events;
    this.#hub = place.openChannel(name);
    const live = () => {
      // Not before: a leader that gets the lock of a tab which has joined takes the tab for gone.
      this.#hub.onmessage = ({ data }: MessageEvent<Announcement>) => {
        if (data.type === "leads" && data.leader !== this.#following) this.#follow(data.leader);
      };
      this.resume();
      return aborted(this.#left.signal);
    };
    // The leader waits for this lock to learn that this tab is no more.
    place.withLock(lockOfTab(name, this.#id), this.#left.signal, live).catch(() => undefined);
  }

  /** Sends a message now, or when the model is there. */
  send(given: ToHost): void {
    const message = this.#ledger.sent(given);
    if (this.#isOpen) this.#port?.send(message);
  }

  /** Gives up leadership, and the wait for it: a frozen page would hold up all others. */
  freeze(): void {
    this.#candidacy?.abort();
    this.#candidacy = undefined;
    this.#leader?.end();
  }

  /** Looks for the leader, and waits to lead. */
  resume(): void {
    if (this.#left.signal.aborted) return;
    this.#post({ type: "who" });
    if (this.#candidacy === undefined) this.#standing = this.#stand();
  }

  /** Ends this use. A model that runs here goes on for the others; resolves when none is left. */
  async leave(): Promise<void> {
    if (this.#left.signal.aborted) return;
    this.#left.abort();
    this.#isOpen = false;
    this.#port?.close();
    this.#hub.onmessage = null;
    this.#hub.close();
    if (this.#leader === undefined) this.#candidacy?.abort();
    else this.#leader.drop(this.#id);
    await this.#standing;
  }

  /** Waits for leadership, and leads. */
  async #stand(): Promise<void> {
    const candidacy = new AbortController();
    this.#candidacy = candidacy;
    await this.#place.withLock(this.#name, candidacy.signal, () => this.#lead()).catch(() => undefined);
    if (this.#candidacy === candidacy) this.#candidacy = undefined;
  }

  async #lead(): Promise<void> {
    if (this.#left.signal.aborted) return;
    const leader = new Leader(this.#place, this.#name);
    this.#leader = leader;
    const [mine, its] = portPair();
    leader.accept(this.#id, its);
    this.#connect(mine);
    try {
      await leader.run(this.#open);
    } catch (thrown) {
      if (!this.#left.signal.aborted) this.#events.failed(thrown);
    }
    this.#leader = undefined;
    this.#isOpen = false;
  }

  /** Turns to a new leader, which answers when the model runs. */
  #follow(leader: string): void {
    if (this.#leader !== undefined) return;
    this.#following = leader;
    this.#connect(channelPort(this.#place.openChannel(channelName(this.#name, leader, this.#id))));
    this.#post({ type: "joins", leader, tab: this.#id });
  }

  #connect(port: TabPort): void {
    this.#port?.close();
    this.#isOpen = false;
    this.#port = port;
    port.receive = (message) => this.#receive(message);
  }

  #receive(message: FromLeader): void {
    switch (message.type) {
      case "leader-opened":
        this.#events.opened(message);
        this.#goOn();
        break;
      case "leader-loads":
        this.#loads(message.progress);
        break;
      case "leader-failed":
        this.#events.failed(fromWire(message.error));
        break;
      default:
        this.#take(message);
    }
  }

  #loads(progress: LoadProgress): void {
    const isHere = this.#leader !== undefined || progress.phase === "ready";
    this.#events.loads(isHere ? progress : { ...progress, phase: "waiting" });
  }

  #take(message: FromHost): void {
    const { news, reply } = this.#ledger.received(message);
    if (reply !== undefined) this.#port?.send(reply);
    if (news !== undefined) this.#events.received(news);
  }

  /** Sends what a leader before has not answered. */
  #goOn(): void {
    this.#isOpen = true;
    const { requests, failures } = this.#ledger.resume();
    for (const failure of failures) this.#events.received(failure);
    for (const request of requests) this.#port?.send(request);
  }

  #post(message: Announcement): void {
    this.#hub.postMessage(message);
  }
}

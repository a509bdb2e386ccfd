/**
 * Ports between the tabs that share a model: messages, and channels to send them.
 *
 * A follower and its leader have a `BroadcastChannel` of their own, which nobody else opens. It needs no broker, whose
 * script bundlers and other origins would have to serve, and Android's browsers have it.
 */

import type { WireError } from "../errors.js";
import type { LoadProgress } from "../load-progress.js";
import type { ModelInfo } from "../model.js";
import type { FromHost, ToHost } from "../protocol.js";
import type { DeviceReport } from "../wasm.js";

/** To all tabs of a model. */
export type Announcement =
  /** A new tab looks for the leader. */
  | { readonly type: "who" }
  /** A tab leads from now on, or says so again. */
  | { readonly type: "leads"; readonly leader: string }
  /** A tab has opened its channel to the leader. */
  | { readonly type: "joins"; readonly leader: string; readonly tab: string };

/** From the leader to one tab. */
export type FromLeader =
  | FromHost
  | { readonly type: "leader-loads"; readonly progress: LoadProgress }
  /** The model runs, and takes requests. */
  | { readonly type: "leader-opened"; readonly info: ModelInfo; readonly report: DeviceReport }
  /** The model has failed, for all tabs. */
  | { readonly type: "leader-failed"; readonly error: WireError };

/** One end of a channel between two tabs. */
export interface Port<Sent, Received> {
  send(message: Sent): void;
  receive: (message: Received) => void;
  close(): void;
}

/** The end of a tab. */
export type TabPort = Port<ToHost, FromLeader>;

/** The end of the leader. */
export type LeaderPort = Port<FromLeader, ToHost>;

/** The used part of a `BroadcastChannel`. */
export interface Channel {
  postMessage(message: unknown): void;
  onmessage: ((event: MessageEvent) => void) | null;
  close(): void;
}

/** What tabs have in common: names, locks and channels of an origin. */
export interface Place {
  openChannel(name: string): Channel;
  /** Holds a lock while `work` runs. An aborted signal ends the wait with its reason. */
  withLock(name: string, signal: AbortSignal, work: () => Promise<void>): Promise<void>;
}

/** Resolves when a signal aborts, or at once if it has. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

/** A port over a channel. A closed one sends nothing, where the channel itself would throw. */
export function channelPort<Sent, Received>(channel: Channel): Port<Sent, Received> {
  let isOpen = true;
  const port: Port<Sent, Received> = {
    send: (message) => isOpen && channel.postMessage(message),
    receive: () => undefined,
    close: () => {
      isOpen = false;
      channel.onmessage = null;
      channel.close();
    },
  };
  channel.onmessage = ({ data }) => port.receive(data);
  return port;
}

/** Two connected ports in one tab. As in a channel, no message arrives before `send` has returned. */
export function portPair(): [TabPort, LeaderPort] {
  let isOpen = true;
  const close = () => {
    isOpen = false;
  };
  const later = (receive: () => void) => queueMicrotask(() => isOpen && receive());
  const tab: TabPort = {
    send: (message) => later(() => leader.receive(message)),
    receive: () => undefined,
    close,
  };
  const leader: LeaderPort = {
    send: (message) => later(() => tab.receive(message)),
    receive: () => undefined,
    close,
  };
  return [tab, leader];
}

/** Channels to a host on the calling thread. */

import type { Connect } from "./connection.js";
import { Host } from "./host.js";
import type { HostPlatform } from "./host-platform.js";
import type { ToHost } from "./protocol.js";

/** A host on the calling thread: in Node, and with `worker: false`. */
export function connectLocal(platform: HostPlatform): Connect {
  return (receive) => {
    let open = true;
    const host = new Host(platform, (message) => {
      if (open) receive(message);
    });
    // As with a worker, no response comes before `send` has returned.
    const send = (message: ToHost) => queueMicrotask(() => void host.receive(message));
    const close = () => {
      open = false;
      send({ type: "dispose", id: 0 });
    };
    return { send, close };
  };
}

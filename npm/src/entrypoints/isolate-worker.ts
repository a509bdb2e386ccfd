/** The file that is served as the service worker of `setun/isolate`: a classic script, for every browser. */

import { isolateResponses, type WorkerScope } from "../isolate/worker.js";

isolateResponses(globalThis as unknown as WorkerScope);

/** The devices that were considered, and why one runs. */

import type { DeviceReport, DeviceVerdict, Verdict } from "setun";
import { element } from "./elements.js";

const VERDICTS: Record<Verdict, string> = {
  chosen: "runs",
  slower: "does not run",
  software: "does not run",
  absent: "is not available",
  failed: "failed",
  unused: "does not run",
};

/** Shows a line for each device; the one that runs comes first. */
export function showDevices({ devices }: DeviceReport): void {
  const list = element("devices", HTMLUListElement);
  list.hidden = false;
  list.replaceChildren(...devices.map(line));
}

function line({ device, level, verdict, reason, layerMicroseconds }: DeviceVerdict): HTMLLIElement {
  const item = document.createElement("li");
  item.dataset.device = device;
  item.dataset.verdict = verdict;
  const name = document.createElement("strong");
  name.textContent = level === "" ? device : `${device} · ${level}`;
  const time = layerMicroseconds === undefined ? "" : ` (${microseconds(layerMicroseconds)} a layer)`;
  item.append(name, ` ${VERDICTS[verdict]}: ${reason}${time}.`);
  return item;
}

function microseconds(time: number): string {
  return `${time.toFixed(time < 10 ? 1 : 0)} µs`;
}

/** Models grouped by family, what fits this device first. */

import { type CatalogEntry, models } from "setun";
import { type Device, fitOf } from "./device-fit.js";
import { fitHere, type ModelEntry } from "./entries.js";

/** Models of one family, or those without one. */
export interface Family {
  readonly title: string;
  readonly entries: readonly ModelEntry[];
}

/** Families of the catalog by their titles. */
const TITLES: Readonly<Record<string, string>> = {
  bonsai: "Ternary Bonsai",
  bitnet: "BitNet b1.58",
  "falcon-e": "Falcon-E",
  falcon3: "Falcon3",
  llama3: "Llama 3",
  trilm: "TriLM",
};

/** Short names of models that are recommended for a chat, the best first. */
const RECOMMENDED = ["ternary-bonsai-1.7b", "falcon-e-1b"];

/** The recommended model of those that run here; `undefined` where none does. */
export function recommended(device: Device): CatalogEntry | undefined {
  const known = RECOMMENDED.map((name) => models.catalog.find((entry) => entry.name === name));
  return known.find((entry) => entry !== undefined && fitOf(entry.memory, device).runs === "yes");
}

/** Groups models: those outside the catalog first, then families; in each, those that run here first, by size. */
export function families(entries: readonly ModelEntry[], device: Device): Family[] {
  const groups = new Map<string, ModelEntry[]>();
  for (const entry of entries) {
    const name = entry.catalog?.family ?? "";
    groups.set(name, [...(groups.get(name) ?? []), entry]);
  }
  const best = recommended(device)?.family;
  const rank = (name: string) => {
    if (name === "") return 0;
    if (name === best) return 1;
    return (groups.get(name) ?? []).some((entry) => runsHere(entry, device)) ? 2 : 3;
  };
  return [...groups]
    .sort(([one], [other]) => rank(one) - rank(other))
    .map(([name, group]) => ({
      title: name === "" ? "On this device" : (TITLES[name] ?? name),
      entries: name === "" ? group : sorted(group, device),
    }));
}

function sorted(group: readonly ModelEntry[], device: Device): ModelEntry[] {
  const size = ({ catalog }: ModelEntry) => catalog?.parameters ?? 0;
  const rank = (entry: ModelEntry) => Number(!runsHere(entry, device));
  return group.toSorted((one, other) => rank(one) - rank(other) || size(one) - size(other));
}

function runsHere(entry: ModelEntry, device: Device): boolean {
  return fitHere(entry, device)?.runs === "yes";
}

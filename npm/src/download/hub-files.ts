/** The files of a hub's model, read as they come. */

import type { HubSource } from "../hub-name.js";
import { ChosenFiles, type ModelFiles } from "../model-files.js";
import { UrlFiles } from "../url-files.js";
import type { Http } from "./http.js";
import { hubFolder, planHub } from "./hub.js";
import type { Entry } from "./plan.js";

/** Asks the hub what there is to read. */
export async function hubFiles(
  source: HubSource,
  http: Http,
): Promise<{ readonly entry: Entry; open(): ModelFiles }> {
  const { endpoint, model } = source;
  const plan = await planHub(http, source);
  const url = hubFolder(endpoint, model, plan.revision);
  const headers = http.authorization(url);
  const has = async (name: string) => (await plan.more(name)) !== undefined;
  const folder = { kind: "url", layout: "folder", name: plan.entry.name, url } as const;
  const open = () => new ChosenFiles(new UrlFiles(folder, http.signal, headers), has);
  return { entry: plan.entry, open };
}

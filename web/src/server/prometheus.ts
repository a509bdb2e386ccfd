/** The server's metrics, out of the text format of Prometheus. */

import type { Summary } from "setun";
import type { FigureMetrics } from "../engine-figures.js";

/** Prefixes of the names: setun's, and vLLM's with `--metrics-compat vllm`. */
const PREFIX = /^(?:setun_|vllm:)/;

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;

/** A value with its labels, as they are written. */
interface Sample {
  readonly labels: string;
  readonly value: number;
}

/** Samples by their names without prefix. */
export type Samples = ReadonlyMap<string, readonly Sample[]>;

export function parse(text: string): Samples {
  const samples = new Map<string, Sample[]>();
  for (const line of text.split("\n")) {
    const [, name = "", labels = "", value = ""] = SAMPLE.exec(line) ?? [];
    if (name === "") continue;
    const key = name.replace(PREFIX, "");
    const known = samples.get(key) ?? [];
    samples.set(key, [...known, { labels, value: Number(value) }]);
  }
  return samples;
}

/** The metrics of all models together. */
export function figures(samples: Samples): FigureMetrics {
  const sum = (name: string, label = "") => sumOf(samples, name, label);
  const times = (name: string) => summary(samples, name, 1000);
  const memory = (kind: string) => sum("memory_bytes", `kind="${kind}"`);
  return {
    tokens: sum("generation_tokens_total"),
    admissions: sum("admissions_total"),
    prefixHits: sum("prefix_hits_total"),
    cachedPromptTokens: sum("prefix_cache_hits_total"),
    drafts: sum("spec_decode_num_drafts_total"),
    draftTokens: sum("spec_decode_num_draft_tokens_total"),
    acceptedTokens: sum("spec_decode_num_accepted_tokens_total"),
    running: sum("num_requests_running"),
    waiting: sum("num_requests_waiting"),
    queueTime: times("request_queue_time_seconds"),
    timeToFirstToken: times("time_to_first_token_seconds"),
    interTokenLatency: times("inter_token_latency_seconds"),
    stepTime: times("step_time_seconds"),
    stepRows: summary(samples, "iteration_tokens_total", 1),
    blocks: sum("kv_blocks_limit"),
    usedBlocks: sum("kv_blocks_used"),
    cachedBlocks: sum("kv_blocks_cached"),
    memory: {
      layers: memory("body"),
      head: memory("head"),
      prefilter: memory("screen"),
      kvCache: memory("cache"),
    },
  };
}

function sumOf(samples: Samples, name: string, label: string): number {
  const found = samples.get(name)?.filter(({ labels }) => labels.includes(label)) ?? [];
  return found.reduce((sum, { value }) => sum + value, 0);
}

/** Mean and quantiles of a histogram, in units of which there are `scale` in one of its own. */
function summary(samples: Samples, name: string, scale: number): Summary {
  const count = sumOf(samples, `${name}_count`, "");
  if (count === 0) return { count, mean: undefined, p50: undefined, p90: undefined, p99: undefined };
  const below = new Map<number, number>();
  for (const { labels, value } of samples.get(`${name}_bucket`) ?? []) {
    const bound = /le="([^"]*)"/.exec(labels)?.[1] ?? "";
    const key = bound === "+Inf" ? Number.POSITIVE_INFINITY : Number(bound);
    below.set(key, (below.get(key) ?? 0) + value);
  }
  const buckets = [...below].sort(([one], [other]) => one - other);
  const quantile = (share: number) => scale * quantileOf(buckets, share * count);
  return {
    count,
    mean: (scale * sumOf(samples, `${name}_sum`, "")) / count,
    p50: quantile(0.5),
    p90: quantile(0.9),
    p99: scale === 1 ? Math.round(quantile(0.99)) : quantile(0.99),
  };
}

/** The value with this many at or below it, as if those of a bucket lay evenly in it. */
function quantileOf(buckets: readonly (readonly [bound: number, below: number])[], rank: number): number {
  let [first, before] = [0, 0];
  for (const [bound, below] of buckets) {
    if (below >= rank && Number.isFinite(bound)) {
      return first + ((bound - first) * (rank - before)) / Math.max(below - before, 1);
    }
    if (Number.isFinite(bound)) [first, before] = [bound, below];
  }
  return first;
}

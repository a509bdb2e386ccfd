/** Metrics of a model. */

/** Counters since the model was loaded, and gauges of the current state. */
export interface Metrics {
  /** Forward passes. */
  readonly steps: number;
  /** Rows of all steps: computed tokens. */
  readonly rows: number;
  /** Rows of prompts, and of tokens that were recomputed after preemption. */
  readonly promptRows: number;
  /** Times that a generation was admitted to the batch. */
  readonly admissions: number;
  /** Admissions with a prefix cache hit. */
  readonly prefixHits: number;
  /** Prompt tokens that were taken from the prefix cache. */
  readonly cachedPromptTokens: number;
  /** Times that a generation was preempted. */
  readonly preemptions: number;
  /** Tokens in the KV cache of generations when they were preempted. */
  readonly preemptedTokens: number;
  /** Speculative decoding: verified proposals. */
  readonly drafts: number;
  /** Speculative decoding: proposed tokens. */
  readonly draftTokens: number;
  /** Speculative decoding: proposed tokens that were accepted. */
  readonly acceptedTokens: number;
  /** Generated tokens. */
  readonly tokens: number;
  /** Generations that ended with an end token, a stop string or their length. */
  readonly finished: number;
  /** Generations that were stopped. */
  readonly aborted: number;
  /** Generations that reached their deadline. */
  readonly timedOut: number;
  /** Generations that ended with an error. */
  readonly failed: number;
  /** Milliseconds from a request to its admission. */
  readonly queueTime: Summary;
  /** Milliseconds from a request to its first token. */
  readonly timeToFirstToken: Summary;
  /** Milliseconds from the admission of a generation to its first token. */
  readonly prefillTime: Summary;
  /** Milliseconds from the first token of a generation to its last, of those without an error. */
  readonly decodeTime: Summary;
  /** Milliseconds between tokens of a generation. Tokens of one step come at the same time. */
  readonly interTokenLatency: Summary;
  /** Milliseconds of a step, including sampling. */
  readonly stepTime: Summary;
  /** Rows of a step: the batch size. */
  readonly stepRows: Summary;
  /** Memory in use. */
  readonly memory: MemoryByKind;
  /** Generations that wait. */
  readonly waiting: number;
  /** Generations in the batch. */
  readonly running: number;
  /** Maximum number of KV cache blocks. */
  readonly blocks: number;
  /** KV cache blocks of running generations. */
  readonly usedBlocks: number;
  /** KV cache blocks that are kept for the prefix cache only. */
  readonly cachedBlocks: number;
}

/** Distribution of a value. Without values all but the count are undefined. */
export interface Summary {
  /** Number of values. */
  readonly count: number;
  /** Mean of the values. */
  readonly mean: number | undefined;
  /** Median. Quantiles are exact for small values and within one eighth for large ones. */
  readonly p50: number | undefined;
  /** 90th percentile. */
  readonly p90: number | undefined;
  /** 99th percentile. */
  readonly p99: number | undefined;
}

/** Memory of a model in bytes. */
export interface MemoryByKind {
  /** Weights of all layers. */
  readonly layers: number;
  /** Weights of the output head, including a tied embedding. */
  readonly head: number;
  /** The 7-bit copy of the head that prefilters its candidates. */
  readonly prefilter: number;
  /** The KV cache at its current size. */
  readonly kvCache: number;
}

/** What a model counts. */

/** What a model has done since it was loaded, and what is there now. */
export interface Metrics {
  /** Steps: passes over the weights. */
  readonly steps: number;
  /** Rows of all steps: tokens that were computed. */
  readonly rows: number;
  /** Rows of prompts, or of tokens that had to be computed again. */
  readonly promptRows: number;
  /** Generations that were given a place in the cache, each time that they were. */
  readonly admissions: number;
  /** Those of them that found the beginning of their tokens in the cache. */
  readonly prefixHits: number;
  /** Positions of prompts that were in the cache already. */
  readonly reusedPositions: number;
  /** How often a generation gave up its memory to others. */
  readonly preemptions: number;
  /** Positions that it had then, most of which are computed again. */
  readonly droppedPositions: number;
  /** Times that guessed tokens of a text were verified. */
  readonly verifications: number;
  /** Tokens that were guessed, from the text so far or by a draft. */
  readonly guessed: number;
  /** Those of them that were right. */
  readonly right: number;
  /** Tokens that were generated. */
  readonly tokens: number;
  /** Generations that came to their end: an end token, a stop text, or their length. */
  readonly finished: number;
  /** Generations that were stopped. */
  readonly aborted: number;
  /** Generations whose time was over. */
  readonly overdue: number;
  /** Generations that ended with an error. */
  readonly failed: number;
  /** Milliseconds from a request to its place in the cache. */
  readonly queue: Summary;
  /** Milliseconds from a request to its first token. */
  readonly firstToken: Summary;
  /** Milliseconds from a token to the next of its generation. Tokens that one step gives come at once. */
  readonly betweenTokens: Summary;
  /** Milliseconds that a step took, with choosing tokens. */
  readonly stepTime: Summary;
  /** Rows of a step: the size of the batch. */
  readonly stepRows: Summary;
  /** What the model keeps in memory, now. */
  readonly memory: MemoryByKind;
  /** Generations that wait for their first turn or for memory, now. */
  readonly waiting: number;
  /** Generations that have a place in the cache, now. */
  readonly running: number;
  /** Most blocks that the cache may have, now. */
  readonly blocks: number;
  /** Blocks of running generations, now. */
  readonly usedBlocks: number;
  /** Blocks that are kept for prompts that begin as others did, now. */
  readonly idleBlocks: number;
}

/** Values in short. Without any, all but the count are undefined. */
export interface Summary {
  /** How many there were. */
  readonly count: number;
  /** Their mean. */
  readonly mean: number | undefined;
  /** The least value that half of them do not exceed; of larger ones, as of times, to within an eighth. */
  readonly p50: number | undefined;
  /** What nine of ten do not exceed. */
  readonly p90: number | undefined;
  /** What 99 of 100 do not exceed. */
  readonly p99: number | undefined;
}

/** Bytes that a model keeps in memory. */
export interface MemoryByKind {
  /** The weights but for the head. */
  readonly body: number;
  /** The head's table; where it is tied, the embedding's too. */
  readonly head: number;
  /** What is kept beside weights so that less of them is read. */
  readonly screen: number;
  /** The cache, as far as it has grown. */
  readonly cache: number;
}

/** A job for the load generator: one prepared request, sent in one of three ways. */
export interface Job {
  readonly port: number;
  /** The whole HTTP request, as latin1 text. */
  readonly request: string;
  /**
   * Position of nine digits in `request` that are replaced by a new number for each request. Absent if all requests are
   * equal.
   */
  readonly numberAt?: number;
  readonly shape:
    | {
        /** Each connection sends its next request when the last one is answered. */ readonly kind: 'closed';
        readonly connections: number;
        readonly durationMs: number;
        /** Ends earlier, after this many requests. */
        readonly callsMax?: number;
      }
    | {
        /**
         * Requests are sent on schedule, whether earlier ones are answered or not. Latency counts from the scheduled
         * time.
         */ readonly kind: 'open';
        readonly perSecond: number;
        readonly durationMs: number;
      }
    | { /** Opens streams and keeps them until `release`. */ readonly kind: 'hold'; readonly streams: number };
}

export interface Percentiles {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
}

export interface JobResult {
  readonly calls: number;
  readonly errors: number;
  readonly firstError: string;
  /** From the first request to the last reply. */
  readonly elapsedMs: number;
  /** Milliseconds from the request to the end of the reply. */
  readonly latency: Percentiles;
  /** Milliseconds from the request to the first byte of the body. */
  readonly firstByte: Percentiles;
  /** Share of one core that the generator used. If it is near 1, the generator was the bottleneck, not the target. */
  readonly generatorLoad: number;
}

export function percentiles(samples: readonly number[]): Percentiles {
  const sorted = Float64Array.from(samples).toSorted();
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? 0;
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99), max: at(1) };
}

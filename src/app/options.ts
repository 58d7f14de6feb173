import type { Payments } from '#gateway';

/** What a gateway is given besides its configuration. */
export interface AppOptions {
  readonly color?: boolean;
  /** Takes finished log lines instead of standard output. */
  readonly writeLog?: (line: string) => void;
  /** Epoch milliseconds, for what is written down and shown. */
  readonly now?: () => number;
  /**
   * Milliseconds that only go on, whatever the machine's clock is set to: what limits, rests and durations go by.
   * Default: `now` where that is given.
   */
  readonly elapsed?: () => number;
  readonly random?: () => number;
  /** What `/metrics` answers where this process is one of several that are one gateway. */
  readonly metricsText?: () => Promise<string>;
  /** A stream that is silent this long gets a comment; default 15 s. */
  readonly keepAliveMs?: number;
  /** What takes payments, in place of the chains of the configuration. */
  readonly payments?: Payments;
}

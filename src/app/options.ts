import type { Payments } from '#gateway';
import type { ReloadReport } from './reload.ts';

/** Options of a gateway beside its configuration. */
export interface AppOptions {
  readonly color?: boolean;
  /** Receives complete log lines. Default: standard output. */
  readonly writeLog?: (line: string) => void;
  /** Epoch milliseconds, for times that are stored and shown. */
  readonly now?: () => number;
  /**
   * Milliseconds of a monotonic clock, for limits, cooldowns and durations. Default: `now` if it is given, otherwise
   * `performance.now`.
   */
  readonly elapsed?: () => number;
  readonly random?: () => number;
  /** Gives the text of `/metrics` if several processes form one gateway. */
  readonly metricsText?: () => Promise<string>;
  /** Reloads the configuration in all processes of this gateway, for `POST /admin/v1/reload`. */
  readonly reloadAll?: () => Promise<ReloadReport>;
  /** A stream that is silent for this time gets a comment as keep-alive. Default: 15 s. */
  readonly keepAliveMs?: number;
  /** Takes payments instead of the configured chains. */
  readonly payments?: Payments;
}

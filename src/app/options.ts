import type { Payments } from '#gateway';
import type { ReloadReport } from './reload.ts';

/** Options of a gateway beside its configuration. */
export interface AppOptions {
  readonly color?: boolean;
  /** Takes finished log lines instead of standard output. */
  readonly writeLog?: (line: string) => void;
  /** Epoch milliseconds, for times that are stored and shown. */
  readonly now?: () => number;
  /**
   * Milliseconds of a clock that nobody sets, for limits, rests and durations. Default: `now` where that is given.
   */
  readonly elapsed?: () => number;
  readonly random?: () => number;
  /** Gives the text of `/metrics` where several processes are one gateway. */
  readonly metricsText?: () => Promise<string>;
  /** Loads the configuration anew for `POST /admin/v1/reload`, in all processes of this gateway. */
  readonly reloadAll?: () => Promise<ReloadReport>;
  /** A stream that is silent this long gets a comment; default 15 s. */
  readonly keepAliveMs?: number;
  /** Takes payments in place of the chains of the configuration. */
  readonly payments?: Payments;
}

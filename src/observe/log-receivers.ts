import type { Config } from '#config';
import { createAlerts } from './alerts.ts';
import { createLogExport } from './log-export.ts';
import type { Logger } from './logger.ts';

/** The receivers of the log besides the standard output: alerts, and a collector. */
interface LogReceivers {
  /** For `also` of a logger; undefined if there is no other receiver. */
  readonly take: ((line: string) => void) | undefined;
  /** Number of lines that the collector did not get, since the start. */
  lost(): number;
  /** Waits a few seconds until waiting lines are sent. */
  close(): Promise<void>;
}

/** `logger` is called only when there is something to log, because the logger itself is made with `take`. */
export function createLogReceivers(config: Config, version: string, logger: () => Logger): LogReceivers {
  const alerts = createAlerts(config.alerts, {
    onLost: (lost) => logger().info(lost, 'an alert was given up'),
  });
  const collector = createLogExport(config, {
    version,
    onLost: (lost) => logger().warn(lost, 'lines of the log could not be sent'),
  });
  const takers = [alerts, collector].flatMap((one) => (one === null ? [] : [one.take]));
  return {
    take: takers.length === 0 ? undefined : (line) => takers.forEach((take) => take(line)),
    lost: () => collector?.lost() ?? 0,
    async close() {
      await Promise.all([alerts?.close(), collector?.close()]);
    },
  };
}

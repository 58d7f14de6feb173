import type { Config } from '#config';
import { createAlerts } from './alerts.ts';
import { createLogExport } from './log-export.ts';
import type { Logger } from './logger.ts';

/** The receivers of the log beside the standard output: alerts, and a collector. */
interface LogReceivers {
  /** For `also` of a logger; undefined where nobody else gets lines. */
  readonly take: ((line: string) => void) | undefined;
  /** Lines of the log that no collector got, since the start. */
  lost(): number;
  /** Waits a moment for what is under way. */
  close(): Promise<void>;
}

/** `logger` is asked for once there is something to say, as it is made with `take`. */
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

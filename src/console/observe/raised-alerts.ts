import { dropOldest } from '#wire';
import { beginningsOf, readAlert, subjectOf } from './alerts.ts';

/** An alert as the console shows it. */
export interface RaisedAlert {
  readonly level: string;
  readonly message: string;
  /** Its subject, such as the name of a provider; may be empty. */
  readonly subject: string;
  readonly count: number;
  /** Epoch milliseconds. */
  readonly firstAt: number;
  readonly lastAt: number;
}

/** The alerts of this process since its start: what it would post to `alerts.url` with the level `warn`. */
export interface RaisedAlerts {
  /** Takes a finished line of the log, without secrets. */
  take(line: string): void;
  /** Those since a time in epoch milliseconds, the newest first. */
  since(at: number): readonly RaisedAlert[];
}

/** The one that was raised longest ago is forgotten first. */
const ALERTS_MAX = 50;

export function createRaisedAlerts(): RaisedAlerts {
  const beginnings = beginningsOf('warn');
  const alerts = new Map<string, RaisedAlert>();
  return {
    take(line) {
      const read = readAlert(line, beginnings);
      if (read === null) return;
      const { level, at, message, facts, about } = read;
      const before = alerts.get(about);
      alerts.delete(about);
      dropOldest(alerts, ALERTS_MAX - 1);
      alerts.set(about, {
        level,
        message,
        subject: subjectOf(facts),
        count: (before?.count ?? 0) + 1,
        firstAt: before?.firstAt ?? at,
        lastAt: at,
      });
    },
    since: (at) => [...alerts.values()].filter(({ lastAt }) => lastAt >= at).toReversed(),
  };
}

import { beginningsOf, readAlert, subjectOf } from './alerts.ts';

export interface RaisedAlert {
  readonly level: string;
  readonly message: string;
  /** The name of the provider, chain and so on that the alert is about; may be empty. */
  readonly subject: string;
  readonly count: number;
  /** Epoch milliseconds. */
  readonly firstAt: number;
  readonly lastAt: number;
}

/** The alerts of this process since its start: what it would post to `alerts.url` with the level `warn`. */
export interface RaisedAlerts {
  take(line: string): void;
  /** Those since a time in epoch milliseconds, the newest first. */
  since(at: number): readonly RaisedAlert[];
}

/** The one that was raised longest ago is forgotten first. */
const ALERTS_MAX = 50;

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/** The newest first; of one millisecond, the one that was raised first. */
const byTime = (alerts: readonly (readonly [string, RaisedAlert])[]) =>
  alerts.toSorted(([, a], [, b]) => b.lastAt - a.lastAt);

export function createRaisedAlerts(): RaisedAlerts {
  const beginnings = beginningsOf('warn');
  const alerts = new Map<string, Mutable<RaisedAlert>>();
  return {
    take(line) {
      const read = readAlert(line, beginnings);
      if (read === null) return;
      const { level, at, message, facts, about } = read;
      const known = alerts.get(about);
      // In its place, because a map that loses an entry per call keeps calls in the old heap (decision 91).
      if (known !== undefined) {
        Object.assign(known, { level, message, subject: subjectOf(facts), count: known.count + 1, lastAt: at });
        return;
      }
      if (alerts.size >= ALERTS_MAX) alerts.delete(byTime([...alerts]).at(-1)![0]);
      alerts.set(about, { level, message, subject: subjectOf(facts), count: 1, firstAt: at, lastAt: at });
    },
    since: (at) =>
      byTime([...alerts])
        .map(([, alert]) => ({ ...alert }))
        .filter(({ lastAt }) => lastAt >= at),
  };
}

import { dropOldest } from '#wire';
import type { Logger } from './logger.ts';

/** Logs what fails again and again while something is away: a service, the database, a chain, a collector. */
export interface OutageLog {
  /**
   * Writes the line at once, and then at most one each ten minutes, with the number of lines that were left out.
   * `subject` is what is away. The lines that are left out are written at `rest`, by default `debug`.
   */
  failed(
    subject: string,
    fields: Readonly<Record<string, unknown>>,
    text: string,
    levels?: { readonly first?: 'warn' | 'error'; readonly rest?: 'info' | 'debug' },
  ): void;
  /** Writes one line of level `info` if a failure was written and this is the first success since. */
  works(subject: string, fields: Readonly<Record<string, unknown>>, text: string): void;
}

interface Outage {
  writtenAt: number;
  leftOut: number;
  /** A failure was written, and no success since. */
  isReported: boolean;
}

const EVERY_MS = 10 * 60_000;
/** Most things that are remembered. One that is forgotten is logged at once again. */
const REMEMBERED_MAX = 10_000;

/** `elapsed` is a monotonic clock in milliseconds. */
export function createOutageLog(logger: Logger, elapsed: () => number): OutageLog {
  const outages = new Map<string, Outage>();
  return {
    failed(subject, fields, text, { first = 'warn', rest = 'debug' } = {}) {
      const at = elapsed();
      const known = outages.get(subject);
      if (known && at - known.writtenAt < EVERY_MS) {
        known.leftOut++;
        if (logger.isLevelEnabled(rest)) logger[rest](fields, text);
        return;
      }
      const leftOut = known?.leftOut ?? 0;
      // Inserted anew, so that the oldest is dropped first.
      outages.delete(subject);
      outages.set(subject, { writtenAt: at, leftOut: 0, isReported: true });
      dropOldest(outages, REMEMBERED_MAX);
      logger[first](leftOut === 0 ? fields : { ...fields, left_out: leftOut }, text);
    },
    works(subject, fields, text) {
      const known = outages.get(subject);
      if (!known?.isReported) return;
      // What fails and works in turns is not logged at each turn: the next failure is left out until its time.
      known.isReported = false;
      logger.info(known.leftOut === 0 ? fields : { ...fields, left_out: known.leftOut }, text);
      known.leftOut = 0;
    },
  };
}

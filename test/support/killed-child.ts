import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Ledger, LockRecord } from '#billing';

/** A program that locks and settles until it is killed. */
export const CRASH_CHILD = join(import.meta.dirname, 'crash-child.ts');

/** The last acknowledgement that the child wrote about a lock. */
export interface Told {
  readonly id: string;
  readonly state: string;
  readonly charged: bigint;
  /** Milliseconds on the child's monotonic clock. */
  readonly at?: number;
  /** A crash may undo it. */
  readonly isLate?: boolean;
}

/**
 * Runs the child until it has acknowledged `acknowledgements` operations or was killed. Returns the last acknowledged
 * state of each lock, and the number of acknowledged operations.
 */
export async function runKilled(options: {
  readonly child?: string;
  readonly dataDir: string;
  /** Makes the ids of one run unique. */
  readonly round: string;
  readonly acknowledgements: number;
  /** Additional environment variables. */
  readonly env?: Readonly<Record<string, string>>;
  /** The file to which the child writes. */
  readonly log: string;
  /** Called with the process, so that the test can kill it in another way. */
  readonly onStart?: (child: ChildProcess) => void;
  /** The number of bytes of the file that count. Default: all. */
  readonly bytes?: () => number;
}): Promise<{ readonly told: ReadonlyMap<string, Told>; readonly count: number; readonly signal: string | null }> {
  const { child: program = CRASH_CHILD, dataDir, round, acknowledgements, log } = options;
  const file = openSync(log, 'w');
  const child = spawn(process.execPath, [program, dataDir, round, `${acknowledgements}`], {
    stdio: ['ignore', file, 'inherit'],
    env: { ...process.env, ...options.env },
  });
  options.onStart?.(child);
  const [, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  closeSync(file);
  const said = readFileSync(log).subarray(0, options.bytes?.() ?? Number.POSITIVE_INFINITY);
  const lines = said.toString('utf8').split('\n').slice(0, -1);
  const told = new Map(
    lines.map((line) => {
      const [state, id, charged, at, late] = line.split(' ') as [string, string, string, string, string];
      return [id, { id, state, charged: BigInt(charged), at: Number(at), isLate: late === 'late' }];
    }),
  );
  return { told, count: lines.length, signal };
}

/**
 * Returns the locks whose state in the ledger contradicts an acknowledgement. Those of the last `flushMs` may be undone
 * if they are late.
 */
export async function contradictedBy(
  ledger: Ledger,
  told: ReadonlyMap<string, Told>,
  flushMs = 0,
): Promise<readonly Told[]> {
  const last = Math.max(...[...told.values()].map(({ at = 0 }) => at));
  const records = await Promise.all([...told.keys()].map((id) => ledger.find(id)));
  // A lock that was acknowledged as held may have been resolved just when the process was killed. It may also be lost,
  // unless it was kept for a task: it ends with its process.
  const isThere = (record: LockRecord | null, { state, charged }: Told) =>
    state === 'held' ||
    (record !== null && (state === 'kept' ? record.isKept : record.state === state && record.charged === charged));
  const mayBeUndone = ({ isLate = false, at = 0 }: Told) => isLate && last - at < flushMs;
  return [...told.values()].filter((each, index) => !isThere(records[index]!, each) && !mayBeUndone(each));
}

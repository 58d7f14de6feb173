import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Ledger, LockRecord } from '#billing';

/** The program that locks and settles until it is killed. */
export const CRASH_CHILD = join(import.meta.dirname, 'crash-child.ts');

/** What the child said of one lock last. */
export interface Told {
  readonly id: string;
  readonly state: string;
  readonly charged: bigint;
}

/**
 * Runs the child until it has acknowledged `acknowledgements` operations, or was killed before; returns the last state
 * it told of each lock, and how many operations it acknowledged.
 */
export async function runKilled(options: {
  readonly child?: string;
  readonly dataDir: string;
  /** Keeps the ids of one run apart. */
  readonly round: string;
  readonly acknowledgements: number;
  /** More environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** File that the child writes to. */
  readonly log: string;
  /** Told of the process, to end it otherwise. */
  readonly onStart?: (child: ChildProcess) => void;
  /** Bytes of the file that count; default is all of them. */
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
      const [state, id, charged] = line.split(' ') as [string, string, string];
      return [id, { id, state, charged: BigInt(charged) }];
    }),
  );
  return { told, count: lines.length, signal };
}

/** What the ledger has otherwise than it was told. */
export async function contradictedBy(ledger: Ledger, told: ReadonlyMap<string, Told>): Promise<readonly Told[]> {
  const records = await Promise.all([...told.keys()].map((id) => ledger.find(id)));
  // A lock that was told as held may have been resolved in the moment of the kill.
  const kept = (record: LockRecord | null, { state, charged }: Told) =>
    record !== null && (state === 'held' || (record.state === state && record.charged === charged));
  return [...told.values()].filter((each, index) => !kept(records[index]!, each));
}

import { closeSync, fsyncSync, ftruncateSync, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { makeFolderIn } from '../owner.ts';
import { loadStatements, type Prepare } from '../statement.ts';
import { readRecords, readToEnd } from './reader.ts';
import type { LogHead, LogRecord } from './record.ts';
import { listSegments } from './segments.ts';
import type { SharedProgress } from './shared-progress.ts';
import type { LogStart } from './ledger-log.ts';

/** A module that applies records of the log to the tables. */
export interface Follower {
  /** Applies records in their order. It is called inside a transaction. */
  apply(prepare: Prepare, records: readonly LogRecord[]): void;
}

interface Follow {
  /** The end of the log, from which to continue. */
  readonly start: LogStart;
  /** Applies all records up to the current end of the log. */
  catchUp(): void;
}

const SQL = loadStatements(import.meta.url, './sql/log-position.sql', ['findLogPosition', 'moveLogPosition']);

/** Bytes of records that are applied in one transaction. */
const TRANSACTION_BYTES = 4 * 1024 * 1024;

interface FollowOptions {
  readonly folder: string;
  readonly follower: Follower;
  readonly prepare: Prepare;
  readonly transaction: (run: () => void) => void;
  readonly progress: SharedProgress;
}

/**
 * Replays the records that the tables do not have yet, and cuts off a partly written last record. Throws LogCorrupt.
 */
export function followLog(options: FollowOptions): Follow {
  const { folder, follower, prepare, transaction, progress } = options;
  makeFolderIn(dirname(folder), folder);
  const row = prepare(SQL.findLogPosition).get() as { position: bigint; n: bigint; hash: string };
  let head: LogHead = { position: Number(row.position), n: Number(row.n), hash: row.hash };

  const apply = (records: readonly LogRecord[]) => {
    const last = records.at(-1);
    if (last === undefined) return;
    transaction(() => {
      follower.apply(prepare, records);
      prepare(SQL.moveLogPosition).run(last.position, last.n, last.hash);
    });
    head = { position: last.position, n: last.n, hash: last.hash };
    progress.followed = head.position;
  };
  const applyAll = (records: Iterable<LogRecord>) => {
    let group: LogRecord[] = [];
    for (const record of records) {
      group.push(record);
      if (record.position - head.position < TRANSACTION_BYTES) continue;
      apply(group);
      group = [];
    }
    apply(group);
  };

  applyAll(replayed(folder, head));
  progress.end = head.position;
  progress.followed = head.position;
  const last = listSegments(folder).at(-1);
  return {
    start: { folder, head, segment: last === undefined || last.isCompressed ? null : last.start },
    catchUp() {
      const to = progress.end;
      if (to > head.position) applyAll(readRecords(folder, head, to, true));
    },
  };
}

/** The records after `from`. Then truncates the last segment at the end of the last complete record. */
function* replayed(folder: string, from: LogHead): Generator<LogRecord> {
  const end = yield* readToEnd(folder, from);
  const last = listSegments(folder).at(-1);
  if (last === undefined || last.isCompressed || last.start + statSync(last.path).size <= end.position) return;
  const file = openSync(last.path, 'r+');
  ftruncateSync(file, end.position - last.start);
  fsyncSync(file);
  closeSync(file);
}

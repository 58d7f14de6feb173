import { join } from 'node:path';
import { GatewayError } from '#errors';
import { type LockRecord, type Receipt, type ReceiptSigner, registeredArchives } from '#billing';
import type { ArchiveRun } from '#billing/archive';
import { createRollUp, findCursors } from '#analytics';
import { costsOf } from './paid-offers.ts';
import type { Config } from '#config';
import type { AskedArchive, ArchiveRunView, Archives } from '#pages/administration';
import type { OpenDatabase } from '#store';

interface ArchivesOptions {
  readonly config: Pick<Config, 'dataDir' | 'tasks' | 'services'>;
  readonly database: OpenDatabase;
  /** Read only when an archive is made, because it may create the file of the identity. */
  readonly signer: () => ReceiptSigner;
  readonly receiptOf: (record: LockRecord) => Receipt | null;
  readonly now: () => number;
  /** It rests so many times as long as it works. 0 if no calls are served in this process. */
  readonly restTimes: number;
}

const DAY_MS = 86_400_000;

const archivesFolder = (dataDir: string): string => join(dataDir, 'archives');

/** Runs archives of this database, one at a time, and tells how far they are. `close` ends a run between two steps. */
export function createArchives(options: ArchivesOptions): Archives & {
  /** Drops the rows that a killed run has left. Rejects with ArchiveError. */
  finish(): Promise<string | null>;
  close(): Promise<void>;
} {
  const { config, database, now, restTimes } = options;
  const folders = [archivesFolder(config.dataDir)];
  const closed = new AbortController();
  let run: ArchiveRunView | null = null;
  let running: Promise<void> = Promise.resolve();
  const common = { database, folders, now, restTimes, signal: closed.signal };

  /** The figures must have the calls before these leave the tables. */
  const count = async () => {
    let failure: Error | null = null;
    const rollUp = createRollUp({
      database,
      now,
      everyMs: null,
      costs: () => costsOf(config.services),
      onError: (error) => (failure = toError(error)),
    });
    await rollUp.run();
    await rollUp.close();
    if (failure !== null) throw failure as Error;
  };
  const make = async ({ endsAt, folder, dryRun, keep }: AskedArchive) => {
    const before = { ends_at: new Date(endsAt).toISOString(), error: null, result: null };
    run = { ...before, state: 'running', phase: 'finding', done: 0, total: 1 };
    try {
      // Loaded here, because most starts of a gateway make no archive.
      const { archivePeriod, RECENT_DAYS } = await import('#billing/archive');
      if (!dryRun) await count();
      const done = await archivePeriod({
        ...common,
        endsAt,
        folder: folder ?? folders[0]!,
        // Tasks show what their calls have cost for as long as they are kept.
        recentDays: Math.max(RECENT_DAYS, Math.ceil((config.tasks.ttlMs + config.tasks.retentionMs) / DAY_MS) + 1),
        dryRun,
        keep,
        signer: options.signer(),
        receiptOf: options.receiptOf,
        async isCounted(query, ends) {
          const cursors = await findCursors(query);
          return dryRun || ends.every(({ chain, n }) => (cursors.get(chain)?.n ?? 0) >= n);
        },
        onProgress: (progress) => (run = { ...before, state: 'running', ...progress }),
      });
      run = { ...run, state: 'done', result: viewRun(done) };
    } catch (error) {
      run = { ...run, state: 'failed', error: (error as Error).message };
    }
  };
  return {
    start(archiveRequest) {
      if (run?.state === 'running') throw new GatewayError('invalid_request', 'An archive is being made already');
      running = make(archiveRequest);
    },
    status: async () => ({ archives: await registeredArchives(database.query), run }),
    async finish() {
      if ((await registeredArchives(database.query)).at(-1)?.droppedAt !== null) return null;
      const { finishArchive } = await import('#billing/archive');
      return finishArchive(common);
    },
    async close() {
      closed.abort();
      await running;
    },
  };
}

const toError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));

const viewRun = ({ state, name, path, groups, archive }: ArchiveRun) => ({
  state,
  name,
  path,
  groups,
  ...(archive === null
    ? {}
    : {
        calls: archive.sums.calls,
        receipts: archive.receipts,
        transfers: archive.transfers,
        charged_micro_usdc: Number(archive.sums.charged),
        accounts: archive.closing.length,
        open: new Set(archive.leftovers.map(([, , , [, id]]) => id)).size,
        bytes: archive.bytes,
        sha256: archive.sha256,
        kid: archive.kid,
      }),
});

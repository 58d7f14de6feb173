import { randomUUID } from 'node:crypto';
import { createDueWorker, type Database, loadStatements } from '#store';
import type { Batch } from './batch.ts';
import { Claim, NotNow } from './claim.ts';
import { createToBatch } from './create-batches.ts';
import type { Progress, WorkDeps } from './work-on-batch.ts';

/** The work of one gateway on the batches of its database. */
export interface BatchRunner {
  /** Looks for batches now. */
  wake(): void;
  /** A batch was cancelled here. Other gateways learn of it when they renew their claim. */
  cancelled(id: string): void;
  /** Begins nothing new, and resolves when nothing runs. Another gateway goes on with what has not ended. */
  close(): Promise<void>;
}

interface BatchRunnerOptions extends WorkDeps {
  readonly database: Database;
  /** Whether this gateway has begun to stop. */
  readonly isStopping: () => boolean;
  /** This process is the only user of the database, so existing claims are those of a process that died. */
  readonly alone: boolean;
}

/** Batches that one gateway works on at the same time. How many lines are called at once is bounded apart. */
const BATCHES_MAX = 64;
const TICK_MS = 1_000;
/** A gateway that does not renew its claim for this long is gone, and another one goes on. */
const LEASE_MS = 15_000;
const RENEW_MS = 2_000;
/** The pause after a failure of the database. */
const AGAIN_MS = 5_000;

const SQL = loadStatements(import.meta.url, './sql/batches.sql', [
  'claimBatch',
  'dueBatches',
  'findBatch',
  'makeAllDue',
  'releaseBatch',
  'renewBatch',
]);

export function createBatchRunner(options: BatchRunnerOptions): BatchRunner {
  const { database, content, now, alone, onError } = options;
  const toBatch = createToBatch(content);
  let isClosed = false;
  const isStopping = () => isClosed || options.isStopping();
  /** The batches that this gateway works on. */
  const claims = new Map<string, Claim>();
  let begun: Promise<unknown> | null = null;

  const worker = createDueWorker({ turn: claimDue, pauseMs: TICK_MS, onError });

  async function claimDue(): Promise<boolean> {
    if (isStopping()) return false;
    begun ??= alone ? database.query(SQL.makeAllDue, [now()]) : Promise.resolve();
    await begun.catch((error: unknown) => {
      begun = null;
      throw error;
    });
    const room = BATCHES_MAX - worker.jobs;
    if (room <= 0) return false;
    const due = await database.query(SQL.dueBatches, [now(), room]);
    for (const { id } of due) {
      const claim = randomUUID();
      const at = now();
      // oxlint-disable-next-line no-await-in-loop -- one claim after the other
      const claimed = await database.query(SQL.claimBatch, [id!, claim, at + LEASE_MS, at]);
      if (claimed.length > 0) worker.start(() => work(id as string, claim));
    }
    return false;
  }

  async function work(id: string, claimId: string): Promise<void> {
    const [row] = await database.query(SQL.findBatch, [id]);
    const batch = toBatch(row!);
    const claim = new Claim(claimId, batch.status, isStopping);
    claims.set(id, claim);
    const lease = holdLease(batch, claim);
    let dueIn = 0;
    try {
      // Loaded with the first batch, because most gateways have none.
      const { workOnBatch } = await import('./work-on-batch.ts');
      await workOnBatch(options, batch, claim, lease.follow);
    } catch (error) {
      dueIn = error instanceof NotNow ? error.pauseMs : AGAIN_MS;
      if (!(error instanceof NotNow)) throw error;
    } finally {
      if (claims.get(id) === claim) claims.delete(id);
      const { completed, failed } = await lease.end();
      const at = now();
      // It ends at its time. After that, it waits for providers to end its lines.
      const dueAt = at < batch.expiresAt ? Math.min(at + dueIn, batch.expiresAt) : at + dueIn;
      if (!claim.isLost)
        await database.query(SQL.releaseBatch, [id, claimId, dueAt, completed, failed, batch.status, at]);
    }
  }

  /** Renews the claim, writes how far the batch is, and learns whether it was cancelled. */
  function holdLease({ id, completed, failed }: Batch, claim: Claim) {
    let progress: Progress = { completed, failed };
    let renewing: Promise<void> = Promise.resolve();
    let heldUntil = performance.now() + LEASE_MS;
    const renew = async () => {
      const from = performance.now();
      try {
        const params = [id, claim.id, now() + LEASE_MS, progress.completed, progress.failed];
        const [row] = await database.query(SQL.renewBatch, params);
        if (row === undefined) return claim.lose();
        heldUntil = from + LEASE_MS;
        if (row['status'] === 'cancelling') claim.status = 'cancelling';
      } catch (error) {
        onError(error);
        if (performance.now() > heldUntil) claim.lose();
      }
    };
    const timer = setInterval(() => (renewing = renewing.then(renew)), RENEW_MS);
    return {
      follow(run: Progress) {
        progress = run;
      },
      /** Resolves with how far the batch is. */
      async end() {
        clearInterval(timer);
        await renewing;
        return progress;
      },
    };
  }

  worker.wake();
  return {
    wake: worker.wake,
    cancelled(id) {
      const claim = claims.get(id);
      if (claim !== undefined) claim.status = 'cancelling';
      worker.wake();
    },
    close() {
      isClosed = true;
      return worker.close();
    },
  };
}

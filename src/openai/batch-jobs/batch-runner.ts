import { randomUUID } from 'node:crypto';
import { createDueWorker, type Database, loadStatements } from '#store';
import { getOrInsert, type JobPlace } from '#wire';
import type { Batch, BatchFault } from './batch.ts';
import { checkPlaces, runPlaces, shareOf, UNPAID } from './batch-places.ts';
import { Claim, NotNow } from './claim.ts';
import { createToBatch, readFaults } from './create-batches.ts';
import type { BatchProgress, WorkDeps } from './work-on-batch.ts';

export interface BatchRunner {
  wake(): void;
  /**
   * A batch was cancelled. Other gateways learn of it when they renew their claim. `ended`: the operator has ended it.
   */
  cancelled(id: string, ended: BatchFault | null): void;
  /** Begins nothing new, and resolves when nothing runs. Another gateway goes on with what has not ended. */
  close(): Promise<void>;
}

interface BatchRunnerOptions extends WorkDeps {
  readonly database: Database;
  readonly linesAtOnce: number;
  readonly isStopping: () => boolean;
  /** This process is the only user of the database, so existing claims are those of a process that died. */
  readonly alone: boolean;
}

/** Most due batches that are read in one turn, in all and of one account. */
const READ_MAX = 256;
const READ_PER_ACCOUNT = 16;
/** A batch whose account has no other one keeps its place for so long, although others wait. */
const TURN_MS = 5_000;
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

interface TakenPlace {
  readonly account: string;
  share: string;
  place: JobPlace;
  isRun: boolean;
  isLong: () => boolean;
}

interface BatchWork {
  readonly claim: Claim;
  readonly takenPlace: TakenPlace;
  /** When it began, by `performance.now()`. */
  readonly since: number;
  progress: BatchProgress;
}

export function createBatchRunner(options: BatchRunnerOptions): BatchRunner {
  const { database, content, money, linesAtOnce, now, alone, onError } = options;
  const toBatch = createToBatch(content);
  let isClosed = false;
  const isStopping = () => isClosed || options.isStopping();
  const claims = new Map<string, BatchWork>();
  const checks = checkPlaces();
  const runs = runPlaces(linesAtOnce);
  /** Due batches found no place. */
  let isWaiting = false;
  let begun: Promise<unknown> | null = null;

  const worker = createDueWorker({ turn: claimDue, pauseMs: TICK_MS, onError });

  async function claimDue(): Promise<boolean> {
    if (isStopping()) return false;
    begun ??= alone ? database.query(SQL.makeAllDue, [now()]) : Promise.resolve();
    await begun.catch((error: unknown) => {
      begun = null;
      throw error;
    });
    const due = await database.query(SQL.dueBatches, [now(), READ_PER_ACCOUNT, READ_MAX]);
    isWaiting = due.length === READ_MAX;
    const funded = new Map<string, Promise<boolean>>();
    /** Shares that have no batch here, and wait for a place. */
    const waiting = new Set<string>();
    for (const row of due) {
      const [id, account, isCheck] = [row['id'] as string, row['account'] as string, row['status'] === 'validating'];
      const share = isCheck ? await checkShare(account) : shareOf({ account, amount: row['amount'] as bigint | null });
      const takenPlace = take(account, share, !isCheck);
      if (takenPlace === null) {
        isWaiting = true;
        if (!isCheck && runs.countOf(share) === 0) waiting.add(share);
        continue;
      }
      const claim = randomUUID();
      const at = now();
      const claimed = await database.query(SQL.claimBatch, [id, claim, at + LEASE_MS, at]).catch((error: unknown) => {
        takenPlace.place.release();
        throw error;
      });
      if (claimed.length === 0) takenPlace.place.release();
      else start(id, claim, takenPlace);
    }
    makeWay(waiting.size);
    return false;

    async function checkShare(account: string): Promise<string> {
      return (await getOrInsert(funded, account, () => money.isFunded(account))) ? account : UNPAID;
    }
  }

  function take(account: string, share: string, isRun: boolean): TakenPlace | null {
    let isLong = false;
    const place = (isRun ? runs : checks).tryTake(account, { share, onLong: () => (isLong = true) });
    return place && { account, share, place, isRun, isLong: () => isLong };
  }

  function start(id: string, claim: string, takenPlace: TakenPlace): void {
    worker.start(
      () => work(id, claim, takenPlace),
      () => {
        takenPlace.place.release();
        if (isWaiting) worker.wake();
      },
    );
  }

  /** Asks as many batches as accounts wait to go on later: those of accounts with most, idle ones first. */
  function makeWay(accounts: number): void {
    const running = [...claims.values()].filter(({ takenPlace }) => takenPlace.isRun && !takenPlace.isLong());
    let requestedCount = running.filter(({ claim }) => claim.givesWay).length;
    for (const isIdle of [true, false])
      for (; requestedCount < accounts; requestedCount += 1) {
        const may = running.filter(
          ({ claim, takenPlace, since, progress }) =>
            !claim.givesWay &&
            (!isIdle || progress.running === 0) &&
            (runs.countOf(takenPlace.share) > 1 || performance.now() - since >= TURN_MS),
        );
        if (may.length === 0) break;
        may
          .reduce((most, one) =>
            runs.countOf(one.takenPlace.share) > runs.countOf(most.takenPlace.share) ? one : most,
          )
          .claim.giveWay();
      }
  }

  async function work(id: string, claimId: string, takenPlace: TakenPlace): Promise<void> {
    const [row] = await database.query(SQL.findBatch, [id]);
    const batch = toBatch(row!);
    const claim = new Claim(claimId, batch.status, isStopping, {
      mayRun(checked) {
        if (takenPlace.isRun) return true;
        const place = take(takenPlace.account, shareOf(checked), true);
        if (place === null) return false;
        takenPlace.place.release();
        Object.assign(takenPlace, place);
        return true;
      },
      becomeLong: () => takenPlace.place.becomeLong(),
    });
    if (claim.isCancelled) claim.cancel(batch.errors?.[0] ?? null);
    const progress = { completed: batch.completed, failed: batch.failed, running: 0 };
    const own: BatchWork = { claim, takenPlace, since: performance.now(), progress };
    claims.set(id, own);
    const lease = holdLease(batch, own);
    let dueIn = 0;
    try {
      // Loaded with the first batch, because most gateways have none.
      const { workOnBatch } = await import('./work-on-batch.ts');
      await workOnBatch(options, batch, claim, lease.follow);
    } catch (error) {
      dueIn = error instanceof NotNow ? error.pauseMs : AGAIN_MS;
      if (!(error instanceof NotNow)) throw error;
    } finally {
      if (claims.get(id) === own) claims.delete(id);
      const { completed, failed } = await lease.end();
      const at = now();
      // It ends at its time. After that, it waits for providers to end its lines.
      const dueAt = at < batch.expiresAt ? Math.min(at + dueIn, batch.expiresAt) : at + dueIn;
      if (!claim.isLost)
        await database.query(SQL.releaseBatch, [id, claimId, dueAt, completed, failed, batch.status, at]);
    }
  }

  function holdLease({ id, account }: Batch, work: BatchWork) {
    const { claim } = work;
    let renewing: Promise<void> = Promise.resolve();
    let heldUntil = performance.now() + LEASE_MS;
    const renew = async () => {
      const from = performance.now();
      try {
        const params = [id, claim.id, now() + LEASE_MS, work.progress.completed, work.progress.failed];
        const [row] = await database.query(SQL.renewBatch, params);
        if (row === undefined) return claim.lose();
        heldUntil = from + LEASE_MS;
        if (row['status'] === 'cancelling') claim.cancel(readFaults(content, account, row['errors'])?.[0] ?? null);
      } catch (error) {
        onError(error);
        if (performance.now() > heldUntil) claim.lose();
      }
    };
    const timer = setInterval(() => (renewing = renewing.then(renew)), RENEW_MS);
    return {
      follow(run: BatchProgress) {
        work.progress = run;
      },
      async end() {
        clearInterval(timer);
        await renewing;
        return work.progress;
      },
    };
  }

  worker.wake();
  return {
    wake: worker.wake,
    cancelled(id, ended) {
      claims.get(id)?.claim.cancel(ended);
      worker.wake();
    },
    close() {
      isClosed = true;
      // Those that wait for the place of a line wait no longer.
      for (const { claim } of claims.values()) claim.giveWay();
      return worker.close();
    },
  };
}

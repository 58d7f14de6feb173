import { loadStatements, type Database } from '#store';
import { GatewayError } from '#errors';
import type { Caller } from '#accounts';
import { newCallId } from '#call';
import type { Batch, BatchFault, BatchStatus, LineCalls } from './batch.ts';
import type { BatchMoney } from './batch-money.ts';
import { checkLines, faultOf } from './check-lines.ts';
import { type Claim, NotNow } from './claim.ts';
import { BatchRun, type RunDeps, sumsOf } from './run-lines.ts';

const SQL = loadStatements(import.meta.url, './sql/batches.sql', [
  'closeBatch',
  'endBatch',
  'finalizeBatch',
  'findBatch',
  'lockBatch',
  'putResults',
  'runBatch',
]);

export interface WorkDeps extends RunDeps {
  readonly database: Pick<Database, 'query' | 'batch'>;
  readonly money: BatchMoney;
  readonly calls: LineCalls;
  /** The caller as whom the lines of a batch are called. Rejects with GatewayError if its key is not valid any more. */
  readonly callerOf: (batch: Batch) => Caller | Promise<Caller>;
  /** Tells others that a batch has ended. It may be called again for the same batch. */
  readonly tell: (batch: Batch) => Promise<void>;
}

export interface BatchProgress {
  readonly completed: number;
  readonly failed: number;
  readonly running: number;
}

/**
 * Works on a claimed batch until it has ended, or until the claim has. Each step can be taken again by another gateway
 * that goes on after it. `onRun`: called with the counts of its lines, once they run.
 */
export async function workOnBatch(
  deps: WorkDeps,
  requestedBatch: Batch,
  claim: Claim,
  onRun: (progress: BatchProgress) => void,
): Promise<void> {
  let batch: Batch | null = requestedBatch;
  if (batch.endedAt !== null) return close(deps, batch, claim);
  if (batch.status === 'validating' && deps.now() < batch.expiresAt) batch = await begin(deps, batch, claim);
  if (batch === null) return;
  // A batch that was cancelled before its lines were paid has no line.
  if (batch.inProgressAt !== null && batch.status !== 'finalizing') {
    if (!claim.mayRun(batch)) throw new NotNow('other batches run', 0);
    const run = new BatchRun(deps, batch, claim);
    onRun(run);
    if (!(await run.run())) return;
    if (run.fault !== null && !claim.isCancelled) return end(deps, batch, claim, 'failed', [run.fault]);
    if (!claim.isCancelled && deps.now() < batch.expiresAt) await finalize(deps, batch, claim, run);
  }
  const ended = claim.isCancelled ? 'cancelled' : claim.status === 'finalizing' ? 'completed' : 'expired';
  await end(deps, batch, claim, ended, null);
}

/** Checks the lines and locks what they may cost. null if the batch has ended, or goes on elsewhere. */
async function begin(deps: WorkDeps, requestedBatch: Batch, claim: Claim): Promise<Batch | null> {
  const { database, money, callerOf, now } = deps;
  let batch = requestedBatch;
  const fail = (faults: readonly BatchFault[]) => end(deps, batch, claim, 'failed', faults).then(() => null);
  try {
    if (batch.lockId === null || !(await money.isUsable(batch.lockId))) {
      const checked = await checkLines(deps, batch, claim);
      if (checked === null) return claim.isCancelled ? batch : null;
      if ('length' in checked) return await fail(checked);
      const { total, most, model } = checked;
      const amount = batch.maxCost !== null && batch.maxCost < most ? batch.maxCost : most;
      const lockId = newCallId();
      const lockRows = await database.query(SQL.lockBatch, [batch.id, claim.id, lockId, amount, total, model]);
      if (lockRows.length === 0) return await refresh(deps, batch, claim);
      batch = { ...batch, lockId, amount, total, model };
    }
    await money.lock(batch, await callerOf(batch));
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code === 'internal' || error.code === 'service_unavailable')
      throw error;
    return fail([faultOf(error)]);
  }
  const at = now();
  const runs = await database.query(SQL.runBatch, [batch.id, claim.id, at]);
  if (runs.length === 0) return refresh(deps, batch, claim);
  // It may have been cancelled here meanwhile.
  if (!claim.isCancelled) claim.status = 'in_progress';
  return { ...batch, status: 'in_progress', inProgressAt: at };
}

/** A batch whose row was changed by others: it was cancelled, or another gateway has it. */
async function refresh({ database }: WorkDeps, batch: Batch, claim: Claim): Promise<Batch | null> {
  const [row] = await database.query(SQL.findBatch, [batch.id]);
  if (row?.['status'] !== 'cancelling') {
    claim.lose();
    return null;
  }
  claim.status = 'cancelling';
  return { ...batch, status: 'cancelling' };
}

async function finalize(
  { database, now }: WorkDeps,
  { id }: Batch,
  claim: Claim,
  { completed, failed }: BatchProgress,
) {
  const finalized = await database.query(SQL.finalizeBatch, [id, claim.id, now(), completed, failed]);
  // It was cancelled when all lines had ended.
  claim.status = finalized.length > 0 ? 'finalizing' : 'cancelling';
}

/** Gives the rest of the money back, makes the files of the results, and ends the batch. */
async function end(
  deps: WorkDeps,
  batch: Batch,
  claim: Claim,
  status: BatchStatus,
  faults: readonly BatchFault[] | null,
): Promise<void> {
  const { database, content, money, now } = deps;
  if (claim.isLost) return;
  await money.release(batch, status);
  const sums = await sumsOf(database, batch.id);
  const sum = (name: 'prompt' | 'cached' | 'completion' | 'reasoning') =>
    sums.reduce((all, line) => all + line[name], 0);
  const countOf = (state: string) => sums.find((line) => line.state === state)?.count ?? 0;
  const usage = {
    prompt: sum('prompt'),
    cached: sum('cached'),
    completion: sum('completion'),
    reasoning: sum('reasoning'),
  };
  const [completed, failed] = [countOf('completed'), countOf('failed')];
  const { id, account, outputFile, errorFile, keepMs } = batch;
  const at = now();
  const results = (file: string, state: string, name: string) => ({
    statement: SQL.putResults,
    params: [file, id, state, content.sealText(account, name), at + keepMs, at, claim.id],
  });
  const errors = faults === null ? null : content.sealText(account, JSON.stringify(faults));
  const ended = [id, claim.id, status, at, errors, completed, failed, JSON.stringify(usage)];
  const [, , rows] = await database.batch([
    results(outputFile, 'completed', `${id}_output.jsonl`),
    results(errorFile, 'failed', `${id}_error.jsonl`),
    { statement: SQL.endBatch, params: ended },
  ]);
  const [row] = rows!;
  if (row === undefined) return claim.lose();
  await close(deps, { ...batch, status: row['status'] as BatchStatus, endedAt: at }, claim);
}

/** Tells of the end of a batch. Until that is done, the batch stays due. */
async function close({ database, tell }: WorkDeps, batch: Batch, claim: Claim): Promise<void> {
  await tell(batch);
  await database.query(SQL.closeBatch, [batch.id, claim.id]);
}

import { GatewayError } from '#errors';
import type { Ledger, LockRecord } from '#billing';
import type { Primitive } from '#config';
import { endCallAt, type CallToEnd } from '#network';
import type { RunningCalls } from '#call/compose';
import type { Batches } from '#batch-jobs';
import type { Logger } from '#observe';
import type { EndTask, Tasks } from '#tasks';
import type { Network } from './network.ts';

/** The error that the client of a call gets. */
function endedError(reason: string | null): GatewayError {
  const words = reason === null ? '' : `: ${reason}`;
  return new GatewayError('call_ended', `The operator of this gateway ended the call${words}`, {
    // SDKs repeat a call with this status, and the operator would have to end it again.
    headers: { 'x-should-retry': 'false' },
  });
}

type Log = Pick<Logger, 'info'>;

function logEnded(logger: Log, { id, by, reason }: CallToEnd): void {
  logger.info({ generation: id, administrator: by, reason }, 'an administrator ended a call');
}

/** Ends a call of this gateway. Returns whether it was at work here. */
export function endCallHere(
  { running, batches, logger }: { running: RunningCalls; batches: Pick<Batches, 'wasEnded'>; logger: Log },
  call: CallToEnd,
): boolean {
  const error = endedError(call.reason);
  // No other line of it begins.
  if (call.batch !== null) batches.wasEnded(call.batch, error.message);
  const ended = running.end(call.id, error);
  if (ended) logEnded(logger, call);
  return ended;
}

interface EndCallParts extends Pick<Network, 'cluster' | 'registry'> {
  readonly logger: Log;
  readonly ledger: Pick<Ledger, 'find' | 'children' | 'release'>;
  readonly tasks: Pick<Tasks, 'ofCall'>;
  readonly batches: Pick<Batches, 'end'>;
  readonly endTasks: Readonly<Partial<Record<Primitive, EndTask>>>;
  readonly endHere: (call: CallToEnd) => boolean;
}

/**
 * Ends a call with all calls under it: at whichever gateway of the database it runs, and what its provider goes on
 * with, a task or a batch. Resolves with whether anything of it was under way, and with the addresses of gateways that
 * did not answer.
 */
export function createEndCall({ cluster, registry, logger, ledger, tasks, batches, endTasks, endHere }: EndCallParts) {
  /** Ends the tasks of a call and of those under it. Resolves with what tells their providers. */
  async function endTasksOf(id: string, message: string): Promise<readonly (() => Promise<void>)[]> {
    const task = await tasks.ofCall(id, null);
    const tell = task?.live ? await endTasks[task.primitive]?.(task, message) : null;
    const all = tell ? [tell] : [];
    for (const { id: under, state } of await ledger.children(id))
      if (state === 'held') all.push(...(await endTasksOf(under, message)));
    return all;
  }

  /** Ends a batch, and gives back what its lines do not hold. */
  async function endBatch({ id: lockId, account }: LockRecord, id: string, { message, code }: GatewayError) {
    if (!(await batches.end({ id, account, lockId }, message))) return false;
    const detail = { outcome: 'cancelled', error: message, errorCode: code };
    await ledger.release({ id: lockId, detail: JSON.stringify(detail) });
    return true;
  }

  return async (
    asked: Omit<CallToEnd, 'batch'>,
  ): Promise<{ readonly ended: boolean; readonly silent: readonly string[] }> => {
    const { id, reason } = asked;
    const error = endedError(reason);
    const lock = await ledger.find(id);
    const batch = lock === null ? null : batchOf(lock);
    const call: CallToEnd = { ...asked, batch };
    // First what costs nothing from then on, whatever the calls and the providers do when they learn of it.
    const before = batch === null ? await endTasksOf(id, error.message) : [];
    const wasBatch = batch !== null && (await endBatch(lock!, batch, error));
    // The calls under it may run at other gateways, so all of them are asked.
    const here = endHere(call);
    const elsewhere =
      cluster.peers === null ? { ended: false, silent: [] } : await endCallAt(cluster.peers, registry.others(), call);
    // A call that ran may have begun a task meanwhile.
    const tells = [...before, ...(batch === null ? await endTasksOf(id, error.message) : [])];
    await Promise.all(tells.map((tell) => tell()));
    const wasLate = wasBatch || tells.length > 0;
    if (wasLate && !here) logEnded(logger, call);
    return { ended: wasLate || here || elsewhere.ended, silent: elsewhere.silent };
  };
}

/** The id of the batch that has a lock; null for that of a call. */
function batchOf({ lockDetail }: Pick<LockRecord, 'lockDetail'>): string | null {
  const { batch, requestId } = JSON.parse(lockDetail) as { readonly batch?: unknown; readonly requestId?: unknown };
  return batch === true && typeof requestId === 'string' ? requestId : null;
}

import { GatewayError } from '#errors';
import type { Ledger, LockRecord } from '#billing';
import type { Primitive } from '#config';
import { type CallToEnd, endCallAt, type Peers, type Registry } from '#network';
import type { EndTask, Tasks } from './task.ts';

function endedError(reason: string | null): GatewayError {
  const words = reason === null ? '' : `: ${reason}`;
  return new GatewayError('call_ended', `The operator of this gateway ended the call${words}`, {
    // SDKs repeat a call with this status, and the operator would have to end it again.
    headers: { 'x-should-retry': 'false' },
  });
}

/** Batches, whose locks are those of no call. */
interface EndableBatches {
  /** Ends a batch of this database. Resolves with whether it was under way. */
  end(batch: { readonly id: string; readonly account: string; readonly lockId: string }, why: string): Promise<boolean>;
  /** The operator has ended the batch, at any gateway: no other line of it begins here. */
  wasEnded(id: string, why: string): void;
}

interface EndCallOptions {
  /** The calls of this gateway. `end` returns whether the call was at work here. */
  readonly running: { end(id: string, reason: GatewayError): boolean };
  readonly batches: EndableBatches;
  readonly ledger: Pick<Ledger, 'find' | 'children' | 'release'>;
  readonly tasks: Pick<Tasks, 'ofCall'>;
  /** Each ends a task of its primitive at the provider. */
  readonly endTasks: Readonly<Partial<Record<Primitive, EndTask>>>;
  readonly registry: Pick<Registry, 'others'>;
  /** null for a single gateway. */
  readonly peers: Peers | null;
  readonly logger: { info(fields: object, text: string): void };
}

export interface EndCall {
  here(call: CallToEnd): boolean;
  /**
   * Ends a call with all calls under it: at whichever gateway of the database it runs, and what its provider goes on
   * with, a task or a batch. Resolves with whether anything of it was under way, and with the addresses of gateways
   * that did not answer.
   */
  anywhere(
    callToEnd: Omit<CallToEnd, 'batch'>,
  ): Promise<{ readonly ended: boolean; readonly silent: readonly string[] }>;
}

export function createEndCall({
  running,
  batches,
  ledger,
  tasks,
  endTasks,
  registry,
  peers,
  logger,
}: EndCallOptions): EndCall {
  const logEnded = ({ id, by: endedBy, reason }: CallToEnd) =>
    logger.info({ generation: id, administrator: endedBy, reason }, 'an administrator ended a call');

  const here = (call: CallToEnd): boolean => {
    const error = endedError(call.reason);
    if (call.batch !== null) batches.wasEnded(call.batch, error.message);
    const ended = running.end(call.id, error);
    if (ended) logEnded(call);
    return ended;
  };

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

  const anywhere: EndCall['anywhere'] = async (callToEnd) => {
    const { id, reason } = callToEnd;
    const error = endedError(reason);
    const lock = await ledger.find(id);
    const batch = lock === null ? null : batchOf(lock);
    const call: CallToEnd = { ...callToEnd, batch };
    // First what costs nothing from then on, whatever the calls and the providers do when they learn of it.
    const before = batch === null ? await endTasksOf(id, error.message) : [];
    const wasBatch = batch !== null && (await endBatch(lock!, batch, error));
    // The calls under it may run at other gateways, so all of them are asked.
    const wasHere = here(call);
    const elsewhere = peers === null ? { ended: false, silent: [] } : await endCallAt(peers, registry.others(), call);
    // A call that ran may have begun a task meanwhile.
    const tells = [...before, ...(batch === null ? await endTasksOf(id, error.message) : [])];
    await Promise.all(tells.map((tell) => tell()));
    const wasLate = wasBatch || tells.length > 0;
    if (wasLate && !wasHere) logEnded(call);
    return { ended: wasLate || wasHere || elsewhere.ended, silent: elsewhere.silent };
  };
  return { here, anywhere };
}

/** The id of the batch that has a lock; null for that of a call. */
function batchOf({ lockDetail }: Pick<LockRecord, 'lockDetail'>): string | null {
  const { batch, requestId } = JSON.parse(lockDetail) as { readonly batch?: unknown; readonly requestId?: unknown };
  return batch === true && typeof requestId === 'string' ? requestId : null;
}

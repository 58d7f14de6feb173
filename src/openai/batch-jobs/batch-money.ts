import { escrowOf, type Ledger } from '#billing';
import type { GiveBack } from '#billing/amounts';
import type { Caller } from '#accounts';
import type { Runs } from '#call';
import type { Batch } from './batch.ts';
import { GRACE_MS, locksUntil } from './provider-api.ts';

/** The money of batches: one lock for each, from which the locks of its lines come. */
export interface BatchMoney {
  isFunded(account: string): Promise<boolean>;
  /** Whether a lock that was named can still be made, or is held. */
  isUsable(lockId: string): Promise<boolean>;
  /** Makes the named lock of a batch, unless it is made already, and keeps it. Rejects with GatewayError. */
  lock(batch: Batch, caller: Caller): Promise<void>;
  /**
   * Ends a call whose gateway is gone, so that it can move no money any more. If it was charged, its answer is lost, so
   * the charge is given back, and it resolves with true. The line can be called again.
   */
  endCall(batch: Batch, callId: string): Promise<boolean>;
  /** Whether a call has its lock, and is not settled. */
  holds(callId: string): Promise<boolean>;
  /** Gives back what the lines have not used. `outcome`: how the batch ended. */
  release(batch: Batch, outcome: string): Promise<void>;
}

interface BatchMoneyOptions {
  readonly ledger: Pick<Ledger, 'balance' | 'find' | 'keep' | 'lock' | 'release'>;
  readonly giveBack: GiveBack;
  readonly runs: Runs;
  readonly now: () => number;
  /** This process is the only user of the database, so a call without a lock can get none any more. */
  readonly alone: boolean;
}

const GONE = JSON.stringify({ outcome: 'failed', error: 'the gateway that made the call is gone' });

export function createBatchMoney({ ledger, giveBack, runs, now, alone }: BatchMoneyOptions): BatchMoney {
  /** Uses up an id that has no lock yet, so that a gateway that comes back late cannot make the lock. */
  async function burn({ account }: Batch, id: string): Promise<void> {
    const { ok } = await ledger.lock({
      id,
      account,
      amount: 0n,
      prices: [],
      expiresAt: now() + GRACE_MS,
      detail: GONE,
    });
    if (ok) await ledger.release({ id, detail: GONE });
  }

  return {
    async isFunded(account) {
      return ((await ledger.balance(escrowOf(account)))?.available ?? 0n) > 0n;
    },

    async isUsable(lockId) {
      const record = await ledger.find(lockId);
      return record === null || record.state === 'held';
    },

    async lock({ id: requestId, lockId, amount, model, endpoint, expiresAt }, caller) {
      const id = lockId!;
      if ((await ledger.find(id)) === null)
        await runs.open({
          id,
          noun: 'batch',
          caller,
          requestId,
          primitive: 'model',
          service: model ?? endpoint,
          budget: amount!,
          timeoutMs: expiresAt - now(),
          stream: false,
        });
      // The row of the batch is there, so some gateway ends it and its lock, whatever happens to this one.
      await ledger.keep(id, locksUntil({ expiresAt }));
    },

    async endCall(batch, callId) {
      if (!alone && (await ledger.find(callId)) === null) await burn(batch, callId);
      if ((await ledger.find(callId))?.state === 'held') await ledger.release({ id: callId, detail: GONE });
      return (await giveBack(callId)).amount > 0n;
    },

    async holds(callId) {
      return (await ledger.find(callId))?.state === 'held';
    },

    async release(batch, outcome) {
      const { lockId: id } = batch;
      if (id === null) return;
      const released = await ledger.release({ id, detail: JSON.stringify({ outcome }) });
      if (!alone && !released.ok && released.reason === 'not_found') await burn(batch, id);
    },
  };
}

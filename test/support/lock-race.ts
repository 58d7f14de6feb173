import { escrowOf, treasuryOf, type Ledger, type LockResult } from '#billing';

export interface Race {
  /** Locks that were granted, refused, and that failed with an error. */
  readonly granted: number;
  readonly refused: number;
  readonly failed: number;
  readonly available: bigint;
  readonly locked: bigint;
}

/** `attempts` locks of 10 micro-USD from all ledgers at once, `width` in flight on each, on an account that can pay exactly `affordable` of them. */
export async function raceLocks(ledgers: readonly Ledger[], options: { width: number; attempts: number; affordable: number }): Promise<Race> {
  const account = `racer-${Math.random().toString(36).slice(2)}`;
  const amount = 10n;
  await ledgers[0]!.transfer({
    id: `fund-${account}`,
    from: treasuryOf('test'),
    to: escrowOf(account),
    amount: amount * BigInt(options.affordable),
    memo: '',
  });
  // Every ledger has its connection before the race begins.
  await Promise.all(ledgers.map((ledger) => ledger.release({ id: `warm-${account}`, detail: '{}' })));
  let next = 0;
  let granted = 0;
  let refused = 0;
  let failed = 0;
  const count = (result: LockResult) => {
    if (result.ok) granted += 1;
    else refused += 1;
  };
  const worker = async (ledger: Ledger) => {
    while (next < options.attempts) {
      const id = `${account}-${(next += 1)}`;
      await ledger.lock({ id, account, amount, prices: ['price-1'], expiresAt: Date.now() + 600_000, detail: '{}' }).then(count, () => (failed += 1));
    }
  };
  await Promise.all(ledgers.flatMap((ledger) => Array.from({ length: options.width }, () => worker(ledger))));
  const balance = await ledgers[0]!.balance(escrowOf(account));
  return { granted, refused, failed, available: balance!.available, locked: balance!.locked };
}

import { FEES } from '../ledger/ledger.ts';
import type { MovementTexts } from '../ledger/log-movements.ts';
import type { ClosingBalance } from './closing-rows.ts';

/** Balances that follow the movements of a journal. It keeps one entry for each account. */
export class RunningBooks {
  readonly #accounts = new Map<string, { available: bigint; locked: bigint }>();

  add(account: string, available: bigint, locked: bigint): void {
    const balance = this.#accounts.get(account);
    if (balance === undefined) this.#accounts.set(account, { available, locked });
    else {
      balance.available += available;
      balance.locked += locked;
    }
  }

  /** The legs of a movement, as the view `entries` of the audit has them. */
  move([kind, , account, counterparty, amountText, chargedText, feeText]: MovementTexts): void {
    const amount = BigInt(amountText);
    if (kind === 'lock' || kind === 'return') this.add(account, -amount, amount);
    else if (kind === 'transfer') {
      this.add(account, -amount, 0n);
      this.add(counterparty!, amount, 0n);
    } else if (kind === 'settle') {
      const [charged, fee] = [BigInt(chargedText), BigInt(feeText)];
      this.add(account, amount - charged, -amount);
      this.add(counterparty!, charged - fee, 0n);
      if (fee !== 0n) this.add(FEES, fee, 0n);
    } else this.add(account, amount, -amount);
  }

  balances(): readonly ClosingBalance[] {
    return [...this.#accounts]
      .map(([account, balance]) => ({ account, ...balance }))
      .sort((a, b) => (a.account < b.account ? -1 : 1));
  }

  /** The sum over all accounts, which is 0 in books that are right. */
  sum(): bigint {
    let sum = 0n;
    for (const { available, locked } of this.#accounts.values()) sum += available + locked;
    return sum;
  }
}

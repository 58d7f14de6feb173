import { escrowOf, type Ledger } from '#billing';
import { needsNoMaking, parseAccountId } from '#accounts/names';
import type { ConsumerStore } from '#accounts';

interface MemoAccountsOptions {
  readonly consumers: Pick<ConsumerStore, 'find'>;
  readonly ledger: Pick<Ledger, 'balance'>;
  /** CAIP-2 ids of the networks on which contract wallets can be. */
  readonly contractNetworks: readonly string[];
}

/** Reads the memos of transfers to a treasury. A memo names the account that gets the money. */
interface MemoAccounts {
  /** Returns the account that a memo names, or null if the memo names no existing account. */
  accountOfMemo(memo: string): Promise<string | null>;
  /** Whether a memo names another account than `account`, even one that doesn't exist. */
  namesAnother(memo: string, account: string): boolean;
}

export function createMemoAccounts({ consumers, ledger, contractNetworks }: MemoAccountsOptions): MemoAccounts {
  return {
    async accountOfMemo(memo) {
      const account = accountIn(memo, contractNetworks);
      if (account === null) return null;
      const exists =
        needsNoMaking(account) ||
        (await consumers.find(account)) !== null ||
        (await ledger.balance(escrowOf(account))) !== null;
      return exists ? account : null;
    },
    // The payment terms contain the account's name in the ledger, so an equal text is always this account. Parsed, the
    // name of a contract wallet could be taken for an ordinary wallet.
    namesAnother: (memo, account) => memo !== account && (parseAccountId(memo.trim()) ?? account) !== account,
  };
}

function accountIn(memo: string, contractNetworks: readonly string[]): string | null {
  try {
    return parseAccountId(memo.trim(), contractNetworks);
  } catch {
    // The address may belong to an ordinary wallet or to a contract wallet, and the memo doesn't say which.
    return null;
  }
}

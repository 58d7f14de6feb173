import { escrowOf, type Ledger } from '#billing';
import { needsNoMaking, parseAccountId } from '#auth/accounts';
import type { ConsumerStore } from '#auth';

interface MemoAccountsOptions {
  readonly consumers: Pick<ConsumerStore, 'find'>;
  readonly ledger: Pick<Ledger, 'balance'>;
  /** CAIP-2 ids of the networks that a contract wallet may be on. */
  readonly contractNetworks: readonly string[];
}

/** Reads the memos of transfers into a treasury, which name the account that is paid for. */
interface MemoAccounts {
  /** The account that a memo names; null where the text names no account, or one that does not exist. */
  accountOfMemo(memo: string): Promise<string | null>;
  /** Whether a memo names another account than this one, be it known or not. */
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
    // The terms say the name as the ledger has it. Of a contract wallet it could be read as that of an ordinary one.
    namesAnother: (memo, account) => memo !== account && (parseAccountId(memo.trim()) ?? account) !== account,
  };
}

function accountIn(memo: string, contractNetworks: readonly string[]): string | null {
  try {
    return parseAccountId(memo.trim(), contractNetworks);
  } catch {
    // It could be a wallet's or a contract's: somebody has to say which.
    return null;
  }
}

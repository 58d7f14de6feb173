import { GatewayError } from '#wire';
import { loadStatement, type Database } from '#store';

/**
 * The states that the operator gives an account. `frozen`: no new calls and no withdrawals, but its owner may look, and
 * deposits arrive. `closed`: no request at all.
 */
export const ACCOUNT_STATES = ['open', 'frozen', 'closed'] as const;
export type AccountState = (typeof ACCOUNT_STATES)[number];

const STOPPED = loadStatement(import.meta.url, './sql/list-stopped-accounts.sql');
/** The longest time that this gateway may still serve an account which another gateway has stopped. */
const TTL_MS = 1_000;

/** The states of accounts as this gateway knows them. They are at most a second old. */
export interface AccountStates {
  /** A promise if they must be read again, which happens at most once a second. Rejects with the database's error. */
  of(account: string): AccountState | Promise<AccountState>;
  /** Reads them again for the next request: a state was changed here. */
  changed(): void;
}

/** Only frozen and closed accounts are read and kept in memory, and these are few. */
export function createAccountStates(database: Pick<Database, 'query'>, now: () => number): AccountStates {
  let stopped: ReadonlyMap<string, AccountState> = new Map();
  let from = -Infinity;
  let reading: { readonly startedAt: number; readonly done: Promise<void> } | null = null;

  const isFresh = (since: number, at: number) => at >= since && at < since + TTL_MS;
  const read = (startedAt: number): Promise<void> => {
    const rows = database.query(STOPPED);
    const load = async (): Promise<void> => {
      try {
        const found = await rows;
        // An answer from before a change does not count.
        if (reading !== look) return;
        stopped = new Map(found.map((row) => [row['account'] as string, row['state'] as AccountState]));
        from = startedAt;
      } finally {
        if (reading === look) reading = null;
      }
    };
    const look = { startedAt, done: load() };
    reading = look;
    return look.done;
  };
  const known = (account: string): AccountState => stopped.get(account) ?? 'open';
  const lookUp = async (account: string, at: number): Promise<AccountState> => {
    await (reading !== null && isFresh(reading.startedAt, at) ? reading.done : read(at));
    // A change during the reading discards it.
    return from > at - TTL_MS ? known(account) : lookUp(account, at);
  };
  return {
    of(account) {
      const at = now();
      return isFresh(from, at) ? known(account) : lookUp(account, at);
    },
    changed() {
      from = -Infinity;
      reading = null;
    },
  };
}

/** The error of a new call by `account`; null if it may make calls. */
export function refuseStopped(states: Pick<AccountStates, 'of'>, account: string) {
  const errorOf = (state: AccountState) => (state === 'open' ? null : stoppedAccount(state));
  const state = states.of(account);
  return state instanceof Promise ? state.then(errorOf) : errorOf(state);
}

/** The error of a request that the state of its account does not allow. */
export function stoppedAccount(state: Exclude<AccountState, 'open'>): GatewayError {
  return new GatewayError(
    'permission_denied',
    state === 'frozen'
      ? 'This account is frozen by the operator of this gateway: it cannot make calls or withdraw. Ask the operator'
      : 'This account is closed. Ask the operator of this gateway',
  );
}

/** Size of the shared memory in which the log and its follower publish their progress. */
const BYTES = 32;
const END = 0;
const FOLLOWED = 1;
const AWAKE = 4;
const STATE = 5;

/**
 * `late`: following failed and is tried again. `stopped`: the operator must help, and nothing may be appended
 * meanwhile.
 */
type FollowState = 'fine' | 'late' | 'stopped';
const STATES: readonly FollowState[] = ['fine', 'late', 'stopped'];

/** Shared by two threads without messages: the end of the log on disk, and how far the tables have followed it. */
export interface SharedProgress {
  readonly memory: SharedArrayBuffer;
  /** Positions in the log. */
  end: number;
  followed: number;
  state: FollowState;
  /** Marks the follower as awake. Returns true if it was awake already. */
  wake(): boolean;
  sleep(): void;
}

export function shareProgress(memory: SharedArrayBuffer = new SharedArrayBuffer(BYTES)): SharedProgress {
  const positions = new BigInt64Array(memory, 0, 2);
  const flags = new Int32Array(memory);
  return {
    memory,
    get end() {
      return Number(Atomics.load(positions, END));
    },
    set end(position) {
      Atomics.store(positions, END, BigInt(position));
    },
    get followed() {
      return Number(Atomics.load(positions, FOLLOWED));
    },
    set followed(position) {
      Atomics.store(positions, FOLLOWED, BigInt(position));
    },
    get state() {
      return STATES[Atomics.load(flags, STATE)]!;
    },
    set state(state) {
      Atomics.store(flags, STATE, STATES.indexOf(state));
    },
    wake: () => Atomics.exchange(flags, AWAKE, 1) === 1,
    sleep: () => void Atomics.store(flags, AWAKE, 0),
  };
}

/** Tables that follow the log. A statement that names one must see everything that is in the log. */
const FOLLOWS =
  /\b(?:accounts|budgets|budget_sums|funded_accounts|locks|transfers|journal|journal_batches|ledger_log)\b/i;

/** True if a statement names a table that follows the ledger's log. Names in its comments do not count. */
export const followsLog = (text: string): boolean => FOLLOWS.test(text.replaceAll(/^\s*--.*$/gm, ''));

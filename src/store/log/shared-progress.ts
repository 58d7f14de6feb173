/** Bytes of shared memory that a log and its follower tell each other their progress in. */
const BYTES = 32;
const END = 0;
const FOLLOWED = 1;
const AWAKE = 4;
const STATE = 5;

/** `fine`; `late`: tried again later; `stopped`: somebody has to help, and nothing may be added meanwhile. */
type FollowState = 'fine' | 'late' | 'stopped';
const STATES: readonly FollowState[] = ['fine', 'late', 'stopped'];

/** How far the log goes on disk, and how far the tables have followed it, between two threads without messages. */
export interface SharedProgress {
  readonly memory: SharedArrayBuffer;
  /** Positions in the log. */
  end: number;
  followed: number;
  state: FollowState;
  /** Says that the follower is awake; true where it was already. */
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

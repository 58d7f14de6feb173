/** The durations and counts of all measurements. */
export interface Plan {
  readonly rounds: number;
  readonly smallMs: number;
  readonly openMs: number;
  readonly burstMs: number;
  readonly firstByteMs: number;
  /** Rounds in which paced streams are measured. Each takes a second and a half. */
  readonly pacedRounds: number;
  readonly heldStreams: number;
  readonly memoryRounds: number;
}

/** Takes less than ten minutes with all targets. */
export const FULL: Plan = {
  rounds: 5,
  smallMs: 1500,
  openMs: 3000,
  burstMs: 1500,
  firstByteMs: 1500,
  pacedRounds: 5,
  heldStreams: 1000,
  memoryRounds: 3,
};

/** Takes less than ninety seconds with all targets. Shows that everything works, and the orders of magnitude. */
export const QUICK: Plan = {
  rounds: 2,
  smallMs: 600,
  openMs: 1000,
  burstMs: 500,
  firstByteMs: 500,
  pacedRounds: 1,
  heldStreams: 300,
  memoryRounds: 1,
};

export const SMALL_CONNECTIONS = 32;
export const BURST_CONNECTIONS = 8;
export const PACED_STREAMS = 100;
export const OPEN_PER_SECOND = 500;
export const FIRST_BYTE_PER_SECOND = 100;
/** Rate of the small calls while the streams are open. */
export const PROBE_PER_SECOND = 100;

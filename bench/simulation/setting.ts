/** CPU milliseconds, of which the parts are measured by parameters.ts. */
export interface Cpu {
  /** A gateway's process: each group, each operation in it, and a group whose rows are read first. */
  readonly gateway: GroupCpu;
  /** PostgreSQL's processes, the same. */
  readonly database: GroupCpu;
  /** An operation that is a lock costs so much of `operation`, and a settlement as much more. */
  readonly lockPart: number;
  /** The proxy that delays what it forwards, in each direction. 0 without one. */
  readonly proxyMs: number;
}

export interface GroupCpu {
  readonly group: number;
  /** A part of `group` for which nobody waits: collected memory, the end of a transaction after its answer. */
  readonly behind: number;
  readonly operation: number;
  readonly read: number;
}

/** How long a commit takes until it is on the disk. */
export interface Flush {
  /** The first that waits lets others join it for so long. */
  readonly delayMs: number;
  readonly syncMs: number;
  /** One flush after the other, each for all that wait, as on one disk. Else each commit takes `syncMs` by itself. */
  readonly isShared: boolean;
}

/** What is simulated. */
export interface Setting {
  readonly gateways: number;
  /** All gateways serve all consumers. */
  readonly consumers: number;
  /** The part of the calls that one of the consumers makes. */
  readonly busiest?: number;
  /** Calls a second at each gateway of one more account, which has money for one call at once. */
  readonly broke?: number;
  /** The part of the calls that go to a gateway of their consumer's own. The others go to any. */
  readonly affinity?: number;
  /** What each account has money for: so many calls at once. */
  readonly money: number;
  /** Of each gateway: calls a second at random times, or calls at once. */
  readonly load: { readonly rate: number } | { readonly callers: number };
  /** Between the lock of a call and its settlement. */
  readonly callMs: number;
  /** Both directions, without the processors. */
  readonly tripMs: number;
  readonly flush: Flush;
  readonly cpu: Cpu;
  /** `shared`: these processors run the gateways too. Else each gateway has one of its own. */
  readonly cores: { readonly count: number; readonly shared: boolean };
  /** Work takes so many times as long while another core of the machine is busy too. */
  readonly beside: number;
  /** The part of the time of each piece of work that is exponentially distributed. */
  readonly varies: number;
  /** Whether groups of nothing but locks wait for the disk. Those of plain calls do not. */
  readonly locksWaitForDisk: boolean;
  /** If given: each gateway has created all accounts so long after the one before, and knows them. */
  readonly fundedEveryMs?: number | undefined;
  /** Simulated before and while it is measured. */
  readonly warmMs: number;
  readonly ms: number;
  readonly seed?: number;
}

import type { LockRecord } from '#billing';
import type { MicroUsd, Settlement, Usage } from '#billing/amounts';
import type { Primitive } from '#config';
import { ownPartOf, type Caller } from '#accounts';
import type { MeasuredWork, ReportedUsage } from '#call';
import type { NamedFlags } from '#call/flags';

/** Identifies a task for its consumer. The provider chose `taskId`, which is unique in the service. */
export interface TaskKey {
  readonly primitive: Primitive;
  readonly service: string;
  readonly taskId: string;
}

/**
 * The owner of a task or a session: a whole account, or only the callers within the same running call, or only one
 * restricted key.
 */
export interface TaskOwner {
  readonly account: string;
  /**
   * Id of the running call under which the task was begun, or `key <hash>` of the restricted key that began it. null if
   * a wallet or a key without restrictions began it. The database column is `run`.
   */
  readonly within: string | null;
}

/**
 * The owner of what a caller begins. It also says what the caller may see, see `sees`. A restricted key is given to a
 * program or a person that should not have the whole account, so it owns what it begins.
 */
export const ownerOf = (caller: Caller): TaskOwner => ({ account: caller.account, within: ownPartOf(caller) });

/**
 * Says that a party has its share. An account has room for twice `max`, which its parties share: each restricted key is
 * one, and all the rest of the account another. A party may have one more while as many are free as it then has. So one
 * that is alone has `max`, and none leaves nothing for the next one.
 */
export const limitText = (part: string | null, max: number, what: string): string =>
  part === null
    ? `This account has ${max} ${what}, which is its limit`
    : `This key has its share of the ${what} of its account, which is ${max} and less beside other keys`;

/** A provider's work that outlives the call that began it. */
export interface Task extends TaskKey, TaskOwner {
  readonly offerId: string;
  readonly provider: string;
  /** The protocol's group of tasks; null if the protocol has no groups. */
  readonly contextId: string | null;
  /** The state, in the protocol's terms. */
  readonly state: string;
  /** False after an end was seen. Then the task does not change any more. */
  readonly live: boolean;
  /** True if the task has given output. Then it is paid, unless it reports its own failure. */
  readonly output: boolean;
  /** JSON text of the protocol, for example with the protocol version of the provider. */
  readonly notes: string;
  /**
   * JSON text of the final task, if its provider does not store tasks. null if the task can be fetched from its
   * provider.
   */
  readonly snapshot: string | null;
  readonly createdAt: number;
  /** When its first message was sent; epoch milliseconds. */
  readonly askedAt: number;
  /** Bytes of all messages to the task. */
  readonly sentBytes: number;
  readonly updatedAt: number;
  /** Epoch milliseconds. At this time the task is given up, and its locks are settled or released. */
  readonly expiresAt: number;
}

/** A billed call of a task. Its lock is kept until the task ends. */
export interface TaskCall {
  readonly callId: string;
  /** Id of the price version of the call. */
  readonly price: string;
  /** The most that the call is charged, if its lock may hold more. Default: the locked amount. */
  readonly most?: MicroUsd | null;
}

/** News about a task from any source: a reply, a stream, a poll of it, or a notification. */
export interface Observation {
  /** null if the news does not contain a state. */
  readonly state: string | null;
  readonly contextId?: string | null;
  /** True if the task has given output. Absent if not known. */
  readonly output?: boolean;
  /**
   * null while the task runs. `cut`: it was stopped; it is charged as if complete if it had given output, else it is
   * free. `free`: it reported its own failure.
   */
  readonly end: null | 'complete' | 'cut' | 'free';
  /** The pause in milliseconds that its provider requests before the next poll. Default: the watch decides. */
  readonly pauseMs?: number;
  /** Bytes received about the task; default 0. Usage claims are compared with them. */
  readonly bytes?: number;
  /**
   * The usage of one call, as the protocol reads it, compared with what was measured of the whole task (`work`). Called
   * only at the end of the task.
   */
  readonly usageOf?: (call: TaskCall, first: boolean, work: MeasuredWork) => ReportedUsage;
  readonly snapshot?: string | null;
  /** Of the result, for the records of its calls; see CallRequest.variant. Only at the end. Default: none. */
  readonly variant?: string;
  /** The operator ended it: what the records of its calls say. Absent for every other end. */
  readonly error?: string;
}

/**
 * Ends a running task for the operator: it costs nothing, whatever its provider does. Resolves with what then asks the
 * provider to cancel it, and never rejects; null if the task has ended before.
 */
export type EndTask = (task: Task, error: string) => Promise<(() => Promise<void>) | null>;

export interface SeenTask {
  readonly task: Task;
  /**
   * The charge of each call, if the observation was of the end. The calls are settled by the first end that any gateway
   * saw. Otherwise empty.
   */
  readonly settled: readonly { readonly callId: string; readonly settlement: Settlement }[];
}

export interface NewTask extends TaskKey, TaskOwner {
  readonly offerId: string;
  readonly provider: string;
  readonly contextId: string | null;
  readonly state: string;
  readonly notes: string;
  /** When the first message was sent, in epoch milliseconds; default now. */
  readonly askedAt?: number;
  /** Bytes of the message that begins or continues the task; default 0. */
  readonly messageBytes?: number;
  /** Milliseconds from now until the task is given up. */
  readonly ttlMs: number;
  /** Milliseconds until the first poll, if it must come later than by default. */
  readonly pauseMs?: number;
}

export interface TaskPage {
  readonly tasks: readonly Task[];
  readonly total: number;
  /** The token of the next page; null on the last. */
  readonly next: string | null;
}

/** The names of an API for the position in a list. */
export interface PageNames {
  readonly after: string;
  readonly next: string;
}

interface TaskQuery {
  readonly primitive: Primitive;
  /** null for all services. */
  readonly service: string | null;
  readonly contextId?: string | null;
  readonly state?: string | null;
  /** Only tasks that changed at this time or later; epoch milliseconds. */
  readonly since?: number | null;
  /** `next` of the previous page. */
  readonly after?: string | null;
  /** For errors: the names that the client's API has for `after` and `next`. Default: these. */
  readonly pageNames?: PageNames;
  readonly limit: number;
}

/** The charges of a task, one per call, in the order of the calls. */
export interface TaskCost {
  readonly calls: readonly CallCost[];
}

export interface CallCost {
  readonly id: string;
  readonly charged: MicroUsd;
  /** The charge with all calls under it; absent if no call could be made under it. */
  readonly runCost?: MicroUsd;
  /** The signed receipt; null for a call without one. */
  readonly receipt: string | null;
}

/**
 * Tasks, stored in the database, so that all its gateways know them, also after a restart. The calls of a task are
 * settled once, by the first end that is seen. If the database cannot be reached, methods reject with its error or with
 * LedgerUnavailable.
 */
export interface Tasks {
  /**
   * Call it before a call that may begin a task. Rejects with GatewayError if the owner has its share of the tasks of
   * its account. Calls that are already running can still exceed the limit.
   */
  admit(owner: TaskOwner): Promise<void>;
  /**
   * Records that a call began or continues a task, and keeps the call's lock for as long as the task may run. Call it
   * before the client learns of the task. With `call` null, no lock is kept and no call is added: this prolongs a task,
   * or begins one whose call settles itself.
   * - `taken`: the id belongs to a task of another owner or offer, which is a fault of the provider.
   * - `over`: the owner's task has ended already.
   *
   * After `taken`, `over` and a rejection, the call's own run must resolve its lock. Rejects with RangeError for an id
   * that cannot be stored, see isStorable, and with GatewayError if the lock is resolved already.
   */
  begin(task: NewTask, call: TaskCall | null): Promise<'begun' | 'known' | 'over' | 'taken'>;
  /** null if there is no such task, or it is not the owner's. */
  find(key: TaskKey, owner: TaskOwner): Promise<Task | null>;
  /**
   * The task that a billed call began or continued; null if there is no such task, or it is not the owner's. With the
   * owner null, which is for the operator, of any owner.
   */
  ofCall(callId: string, owner: TaskOwner | null): Promise<Task | null>;
  /** The states of the running tasks of these calls of an account, by call id. */
  liveStatesOf(callIds: readonly string[], account: string): Promise<ReadonlyMap<string, string>>;
  /** The owner's tasks with this id in any service; at most ten. */
  findAll(primitive: Primitive, taskId: string, owner: TaskOwner): Promise<readonly Task[]>;
  /**
   * The owner's task that changed last in a context of a service. `foreign` if the context has only tasks of others,
   * null if it has no tasks.
   */
  lastIn(
    owner: TaskOwner,
    context: { readonly primitive: Primitive; readonly service: string; readonly contextId: string },
  ): Promise<Task | 'foreign' | null>;
  /**
   * Claims a context of a service for an owner. Returns false if another owner has claimed it before. Providers see the
   * gateway as their only client, so the same context id of two accounts would be one context to them.
   */
  claim(
    owner: TaskOwner,
    context: { readonly primitive: Primitive; readonly service: string; readonly contextId: string },
  ): Promise<boolean>;
  /** The owner's tasks, the last changed first. */
  list(owner: TaskOwner, query: TaskQuery): Promise<TaskPage>;
  /**
   * Records an observation of a task. If the observation is of its end, all its calls are settled durably before this
   * resolves. A second end changes nothing and gives the same result. Resolves with null if there is no such task.
   * `except` is a call that its own run settles.
   */
  saw(key: TaskKey, observation: Observation, except?: string): Promise<SeenTask | null>;
  /**
   * The charges of an ended task. null while any call is not settled, and if there is no such task. `beganBy` gives the
   * call that began the task, or null if not known.
   */
  costOf(key: TaskKey, beganBy: (task: Task) => string | null): Promise<TaskCost | null>;
  /**
   * Removes an ended task, after what is open of it is settled. The ledger keeps its calls. Resolves with false if the
   * task runs, or cannot be settled now.
   */
  forget(key: TaskKey): Promise<boolean>;
}

/**
 * Polls a task at its provider. Resolves with null if the provider could not be asked or `signal` aborted. `whole`
 * requests the task with its whole history, to count its bytes.
 */
export type TaskPoll = (task: Task, signal: AbortSignal, whole?: boolean) => Promise<Observation | null>;

/**
 * The end of a task whose time is over, by what the gateway has of it. Does not ask the provider. null if it has
 * nothing: then the task is given up.
 */
export type PollAtExpiry = (task: Task) => Promise<Observation | null>;

/**
 * A pending call of a task that this gateway has settled now. Its flags are those of the usage report, which also count
 * for the provider.
 */
export interface ConcludedCall extends NamedFlags {
  readonly task: Task;
  readonly call: TaskCall;
  /** The provider's name from its offer, or the provider's id if the offer does not exist any more. */
  readonly providerName: string;
  readonly outcome: 'complete' | 'cut' | 'free';
  readonly usage: Usage | null;
  readonly settlement: Settlement;
  /** Milliseconds from the time when the call was added to the task to the end of the task. */
  readonly durationMs: number;
  /** The lock before its settlement. */
  readonly lock: LockRecord;
}

/**
 * Receives events of tasks, for logs and metrics. Each event occurs once over all gateways of a database. Methods
 * return at once and never throw. `tellGivenUp` returns a promise and may be called twice.
 */
export interface TaskSink {
  readonly begun?: (task: Task) => void;
  /** The task has ended, and its calls are being settled. `gaveUp`: no end was seen in time. */
  readonly ended?: (task: Task, gaveUp: boolean) => void;
  /**
   * Tells others that the task was given up. Its calls are settled afterwards. If a gateway stops before they are, this
   * is called again, by any gateway. Never rejects.
   */
  readonly tellGivenUp?: (task: Task) => Promise<void>;
  readonly concluded?: (call: ConcludedCall) => void;
}

/** The protocols' states of a task that waits for an answer of its client. */
const WAITS = /(?:input|auth)[-_]required$/i;

/** True if a task in this state, of any protocol, waits for its client. */
export const waitsForClient = (state: string): boolean => WAITS.test(state);

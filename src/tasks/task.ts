import type { MicroUsd, Settlement } from '#billing';
import type { Primitive } from '#config';
import type { Caller, MeasuredWork, ReportedUsage } from '#gateway';
import type { TaskCost } from './task-cost.ts';

/** A task by the name that its consumer knows it by: the provider made the id, which is unique in its service. */
export interface TaskKey {
  readonly primitive: Primitive;
  readonly service: string;
  readonly taskId: string;
}

/** The owner of a task: its account, or only those who act within the same running call or with one member's key. */
export interface TaskOwner {
  readonly account: string;
  /**
   * Id of the running call under which it was begun, or `key <hash>` of the member's key that began it; null for one
   * that the account began itself. The column is called `run`.
   */
  readonly within: string | null;
}

export function ownerOf({ account, key, run }: Caller): TaskOwner {
  return { account, within: run?.parent ?? (key?.member === undefined ? null : `key ${key.hash}`) };
}

/** Work of a provider that outlives the call that began it. */
export interface Task extends TaskKey, TaskOwner {
  readonly offerId: string;
  readonly provider: string;
  /** The protocol's grouping of tasks; null where it has none. */
  readonly contextId: string | null;
  /** The protocol's word for where it stands. */
  readonly state: string;
  /** False once an end was seen: nothing changes after that. */
  readonly live: boolean;
  /** It has given output: unless it fails by its own words, it is paid. */
  readonly output: boolean;
  /** The protocol's own notes, such as the revision that the provider speaks; JSON text. */
  readonly notes: string;
  /**
   * The task as it ended, for one that no provider keeps; JSON text, null for those that are asked for at their
   * provider.
   */
  readonly snapshot: string | null;
  readonly createdAt: number;
  /** When its first message was sent; epoch milliseconds. */
  readonly askedAt: number;
  /** Bytes of all its messages. */
  readonly sentBytes: number;
  readonly updatedAt: number;
  /** When it is given up, and what is locked for it goes back. Epoch milliseconds. */
  readonly expiresAt: number;
}

/** A billed call of a task. Its lock is kept until the task ends. */
export interface TaskCall {
  readonly callId: string;
  /** Id of the price it was made at. */
  readonly price: string;
  /** The most that it is charged, where its lock may hold more; default what is locked. */
  readonly most?: MicroUsd | null;
}

/** A sight of a task, by whatever path: a reply, a stream, a look at it, a notification. */
export interface Sight {
  /** null where nothing was said of it. */
  readonly state: string | null;
  readonly contextId?: string | null;
  /** It has given output. Default not known. */
  readonly output?: boolean;
  /**
   * null while it goes on. `cut`: it was stopped, which costs the same as its end where it had given output, and
   * else nothing. `free`: it failed by its own words.
   */
  readonly end: null | 'complete' | 'cut' | 'free';
  /**
   * How long its provider wants to be left alone before the next look; default as the watch has it. Milliseconds.
   */
  readonly pauseMs?: number;
  /** Bytes of what was heard of it; default 0. Claims of use are held against them. */
  readonly bytes?: number;
  /**
   * The usage of each of its calls, as the protocol reads it, held against what was measured of the whole task;
   * asked for only at the end.
   */
  readonly usageOf?: (call: TaskCall, first: boolean, work: MeasuredWork) => ReportedUsage;
  readonly snapshot?: string | null;
}

export interface SeenTask {
  readonly task: Task;
  /**
   * The charge of each of its calls, where the sight is of its end: of the first, by which it was settled,
   * whoever saw it. Empty else.
   */
  readonly settled: readonly { readonly callId: string; readonly settlement: Settlement }[];
}

export interface NewTask extends TaskKey, TaskOwner {
  readonly offerId: string;
  readonly provider: string;
  readonly contextId: string | null;
  readonly state: string;
  readonly notes: string;
  /** When the message was sent that began it; default now. Epoch milliseconds. */
  readonly askedAt?: number;
  /** Bytes of the message that begins it, or goes on with it; default 0. */
  readonly messageBytes?: number;
  /** Milliseconds from now until it is given up. */
  readonly ttlMs: number;
  /** Milliseconds before the first look, where that is to be later than it would be. */
  readonly pauseMs?: number;
}

export interface TaskPage {
  readonly tasks: readonly Task[];
  /** Of all pages. */
  readonly total: number;
  /** The token of the next page; null on the last. */
  readonly next: string | null;
}

interface TaskQuery {
  readonly primitive: Primitive;
  /** null: of all services. */
  readonly service: string | null;
  readonly contextId?: string | null;
  readonly state?: string | null;
  /** Changed at this time or later; epoch milliseconds. */
  readonly since?: number | null;
  /** `next` of the page before. */
  readonly after?: string | null;
  readonly limit: number;
}

/**
 * Tasks in the database, so that every gateway that shares it knows them, also after a restart. What is locked for
 * a task is settled once, at the first end that is seen of it. Methods reject with the database's error or
 * LedgerUnavailable when it cannot be reached.
 */
export interface Tasks {
  /**
   * Rejects with GatewayError where an account has as many tasks as it may: before a call that may begin another.
   * Calls that are under way may begin some more.
   */
  admit(account: string): Promise<void>;
  /**
   * Keeps the lock of a call for as long as its task may go on, and notes that the call began the task, or goes on
   * with it (`call` null: with one that is paid already): before anybody is told of the task. `taken`: the id is that
   * of another owner's or offer's task, which is a fault of the provider. `over`: it is the owner's and has ended. The
   * call's own run resolves its lock then, and where this rejects. Rejects with RangeError for an id that cannot be
   * kept, see isStorable, and with GatewayError where the lock has gone back already.
   */
  begin(task: NewTask, call: TaskCall | null): Promise<'begun' | 'known' | 'over' | 'taken'>;
  /** null for one that is not there or is not the owner's. */
  find(key: TaskKey, owner: TaskOwner): Promise<Task | null>;
  /**
   * The task that a billed call began or went on with; null where it has not begun one, or it is not the owner's.
   */
  ofCall(callId: string, owner: TaskOwner): Promise<Task | null>;
  /** States of the tasks that go on of these calls of an account, by the id of the call. */
  liveStatesOf(callIds: readonly string[], account: string): Promise<ReadonlyMap<string, string>>;
  /** The owner's tasks with this id, of whatever service; at most ten. */
  findAll(primitive: Primitive, taskId: string, owner: TaskOwner): Promise<readonly Task[]>;
  /**
   * The owner's that was changed last in a context of a service; `foreign` where all that are in it are others',
   * null where it finds no task.
   */
  lastIn(
    owner: TaskOwner,
    context: { readonly primitive: Primitive; readonly service: string; readonly contextId: string },
  ): Promise<Task | 'foreign' | null>;
  /**
   * Notes that an owner uses a context of a service; false where somebody else did before, whose it then is.
   * Providers know one client, the gateway, so a context that two accounts call the same would be one to them.
   */
  claim(
    owner: TaskOwner,
    context: { readonly primitive: Primitive; readonly service: string; readonly contextId: string },
  ): Promise<boolean>;
  /** The owner's, changed last first. */
  list(owner: TaskOwner, query: TaskQuery): Promise<TaskPage>;
  /**
   * Notes a sight of a task. At its end all its calls are settled, which is durable when this resolves; the second
   * time nothing happens, and the same is told. null for a task that is not there. `except`: a call that its own
   * run settles.
   */
  saw(key: TaskKey, sight: Sight, except?: string): Promise<SeenTask | null>;
  /**
   * The charges of a task that has ended; null while any of its calls is not settled, and for a task that is not
   * there. `beganBy`: the call that began it, null where that is not known.
   */
  costOf(key: TaskKey, beganBy: (task: Task) => string | null): Promise<TaskCost | null>;
}

/**
 * Looks at a task at its provider. Resolves with what is seen; null where it could not be asked, or `signal`
 * aborted: nobody waits any more. `whole`: with all that was said in it, for its bytes.
 */
export type Look = (task: Task, signal: AbortSignal, whole?: boolean) => Promise<Sight | null>;

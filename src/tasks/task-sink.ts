import type { LockRecord, Settlement, Usage } from '#billing';
import type { ProviderFlag } from '#gateway';
import type { Task, TaskCall } from './task.ts';

/** A pending call of a task that this gateway has settled now. */
export interface ConcludedCall {
  readonly task: Task;
  readonly call: TaskCall;
  /** The provider's name from its offer, or the provider's id if the offer does not exist any more. */
  readonly providerName: string;
  readonly outcome: 'complete' | 'cut' | 'free';
  readonly usage: Usage | null;
  readonly settlement: Settlement;
  /** Flags of the usage report, which also count for the provider. */
  readonly flags: readonly ProviderFlag[];
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

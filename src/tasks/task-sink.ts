import type { LockRecord, Settlement, Usage } from '#billing';
import type { ProviderFlag } from '#gateway';
import type { Task, TaskCall } from './task.ts';

/** A call that was left pending with its task, and that this gateway has settled now. */
export interface ConcludedCall {
  readonly task: Task;
  readonly call: TaskCall;
  /** As the provider's offer names it; its id where that is gone. */
  readonly providerName: string;
  readonly outcome: 'complete' | 'cut' | 'free';
  readonly usage: Usage | null;
  readonly settlement: Settlement;
  /** Faults of the end, which are also counted for the provider. */
  readonly flags: readonly ProviderFlag[];
  /** From the reply that made the call one of the task's to the end of the task. */
  readonly durationMs: number;
  /** As it was before. */
  readonly lock: LockRecord;
}

/**
 * News about tasks for a log and for metrics, each told once over all gateways of a database. Methods return at
 * once and never throw.
 */
export interface TaskSink {
  readonly begun?: (task: Task) => void;
  /** An end was seen; its calls are being settled. `gaveUp`: nobody saw one in time. */
  readonly ended?: (task: Task, gaveUp: boolean) => void;
  readonly concluded?: (call: ConcludedCall) => void;
}

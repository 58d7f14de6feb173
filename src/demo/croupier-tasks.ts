import { TaskState, type ListTasksResponse, type Task } from '@a2a-js/sdk';
import { UnsupportedOperationError } from '@a2a-js/sdk/errors';
import {
  DefaultExecutionEventBus,
  type ExecutionEventBus,
  type ExecutionEventBusManager,
  type TaskStore,
} from '@a2a-js/sdk/server';

/** Above this number of tasks, the oldest tasks that aren't running are deleted. */
const TASKS_MAX = 1_000;
const ACTIVE: ReadonlySet<TaskState | undefined> = new Set([
  TaskState.TASK_STATE_SUBMITTED,
  TaskState.TASK_STATE_WORKING,
]);

/** The croupier's tasks and their event buses, in memory. The SDK's own stores would keep every task forever. */
export class CroupierTasks implements TaskStore, ExecutionEventBusManager {
  readonly #tasks = new Map<string, Task>();
  readonly #buses = new Map<string, ExecutionEventBus>();

  find(id: string): Task | undefined {
    return this.#tasks.get(id);
  }

  async load(id: string): Promise<Task | undefined> {
    return structuredClone(this.#tasks.get(id));
  }

  async save(task: Task): Promise<void> {
    // The history is neither stored nor sent back, because a message may be large and contains the run token. The
    // history is cleared in this very object because the SDK answers with it.
    task.history = [];
    this.#tasks.set(task.id, structuredClone(task));
    for (const [id, old] of this.#tasks) {
      if (this.#tasks.size <= TASKS_MAX) break;
      if (ACTIVE.has(old.status?.state)) continue;
      this.#tasks.delete(id);
      this.cleanupByTaskId(id);
    }
  }

  async list(): Promise<ListTasksResponse> {
    throw new UnsupportedOperationError('The croupier has no lists of tasks');
  }

  createOrGetByTaskId(id: string): ExecutionEventBus {
    const bus = this.#buses.get(id) ?? new DefaultExecutionEventBus();
    this.#buses.set(id, bus);
    return bus;
  }

  getByTaskId(id: string): ExecutionEventBus | undefined {
    return this.#buses.get(id);
  }

  cleanupByTaskId(id: string): void {
    this.#buses.get(id)?.removeAllListeners();
    this.#buses.delete(id);
  }
}

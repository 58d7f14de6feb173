import { randomUUID } from 'node:crypto';
import type { Game, GamePart, GameStep } from './croupier-game.ts';
import type { Run } from './croupier-run.ts';

export type TaskState = 'submitted' | 'working' | 'input-required' | 'completed' | 'rejected' | 'canceled' | 'failed';

/** A task as it is at a moment. */
export interface Task {
  readonly id: string;
  readonly contextId: string;
  readonly state: TaskState;
  /** The words that go with the state; null for none. */
  readonly words: string | null;
  /** How many states it has been in before. */
  readonly turn: number;
  readonly since: string;
  /** Of its one artifact; empty while there is none. */
  readonly parts: readonly GamePart[];
}

/** What is told of a task: how it stands now, or a piece of its artifact. */
export type TaskEvent =
  | { readonly kind: 'status'; readonly task: Task }
  | { readonly kind: 'piece'; readonly task: Task; readonly parts: readonly GamePart[]; readonly append: boolean; readonly last: boolean };

export interface CroupierTasks {
  /** Begins a task, or goes on with one that has asked something. null for a task that there is not, or that takes no message now. */
  play(asked: { readonly taskId: string | null; readonly contextId: string | null; readonly text: string; readonly run: Run | null }): Task | null;
  find(id: string): Task | null;
  /** false where the task is over. */
  cancel(id: string): boolean;
  /** Tells what happens to a task until it rests. Begins with what happens after this call. */
  watch(id: string): AsyncIterable<TaskEvent>;
}

/** The oldest that rest are forgotten. */
const TASKS_MAX = 1_000;
const OVER: ReadonlySet<TaskState> = new Set(['completed', 'rejected', 'canceled', 'failed']);

export const isOver = ({ state }: Task): boolean => OVER.has(state);
/** Nothing happens to it until somebody says something, or ever. */
export const rests = (task: Task): boolean => isOver(task) || task.state === 'input-required';

/** The croupier's tasks, in memory. A task goes on whoever leaves. */
export function createCroupierTasks({ game, now }: { readonly game: Game; readonly now: () => number }): CroupierTasks {
  const tasks = new Map<string, Task>();
  const watchers = new Map<string, Set<(event: TaskEvent) => void>>();

  const put = (task: Task): Task => {
    tasks.set(task.id, task);
    for (const [id, old] of tasks) {
      if (tasks.size <= TASKS_MAX) break;
      if (rests(old)) tasks.delete(id);
    }
    return task;
  };
  const tell = (event: TaskEvent) => {
    for (const watcher of watchers.get(event.task.id) ?? []) watcher(event);
  };
  const turn = (task: Task, state: TaskState, words: string | null) => {
    tell({ kind: 'status', task: put({ ...task, state, words, turn: task.turn + 1, since: new Date(now()).toISOString() }) });
  };
  const take = (id: string, step: GameStep) => {
    const task = tasks.get(id);
    if (!task || isOver(task)) return false;
    if (step.kind === 'working') turn(task, 'working', step.words);
    else if (step.kind === 'over') turn(task, step.state, step.words);
    else {
      const { parts, last } = step;
      tell({ kind: 'piece', task: put({ ...task, parts: [...task.parts, ...parts] }), parts, append: task.parts.length > 0, last });
    }
    return true;
  };
  const run = async (id: string, text: string, given: Run | null) => {
    try {
      for await (const step of game(text, given)) if (!take(id, step)) return;
    } catch {
      const task = tasks.get(id);
      if (task && !isOver(task)) turn(task, 'failed', 'The croupier dropped the dice.');
    }
  };

  return {
    play({ taskId, contextId, text, run: given }) {
      const known = taskId === null ? null : tasks.get(taskId);
      if (taskId !== null && known?.state !== 'input-required') return null;
      const since = new Date(now()).toISOString();
      const task = put(
        known
          ? { ...known, state: 'working', words: null, turn: known.turn + 1, since }
          : { id: randomUUID(), contextId: contextId ?? randomUUID(), state: 'submitted', words: null, turn: 0, since, parts: [] },
      );
      // After whoever asked has begun to watch.
      setImmediate(() => void run(task.id, text, given));
      return task;
    },
    find: (id) => tasks.get(id) ?? null,
    cancel(id) {
      const task = tasks.get(id);
      if (!task || isOver(task)) return false;
      turn(task, 'canceled', null);
      return true;
    },
    watch(id) {
      const told: TaskEvent[] = [];
      let wake: (() => void) | null = null;
      const watcher = (event: TaskEvent) => {
        told.push(event);
        wake?.();
      };
      const all = watchers.get(id) ?? new Set();
      watchers.set(id, all.add(watcher));
      return (async function* events() {
        try {
          for (;;) {
            const event = told.shift();
            if (event === undefined) {
              const { promise, resolve } = Promise.withResolvers<void>();
              wake = resolve;
              // oxlint-disable-next-line no-await-in-loop -- the events come one after the other
              await promise;
              continue;
            }
            yield event;
            if (event.kind === 'status' && rests(event.task)) return;
          }
        } finally {
          all.delete(watcher);
          if (all.size === 0) watchers.delete(id);
        }
      })();
    },
  };
}

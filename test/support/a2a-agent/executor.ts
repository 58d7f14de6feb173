import { TaskState, type Message } from '@a2a-js/sdk';
import { TaskNotCancelableError } from '@a2a-js/sdk/errors';
import { AgentEvent, type AgentExecutor, type ExecutionEventBus, type RequestContext } from '@a2a-js/sdk/server';
import type { EndState } from './agent.ts';
import {
  agentMessage,
  artifactOf,
  everyPart,
  newTask,
  stateOf,
  statusOf,
  textPart,
  type TaskIds,
} from './core-values.ts';

/**
 * The text of the first part of the message decides what the agent does:
 *
 * | text | answer |
 * |---|---|
 * | `echo …` | a Message with the rest of the text |
 * | `echo-usage p c` | a Message with usage in its metadata |
 * | `task …` | a task: submitted, working, one artifact with the rest of the text, completed |
 * | `stream n` | a task: n times a working status and a chunk of one artifact, then completed |
 * | `slow ms` | a task that works for that long and then completes |
 * | `wait` | a task that works until `agent.finish` or a cancellation |
 * | `stubborn` | the same, but it cannot be cancelled |
 * | `ask`, `auth` | a task that stops at input-required (auth-required); any message to it completes it |
 * | `fail`, `reject` | a task that ends as failed (rejected) |
 * | `usage p c` | a completed task with `{"tollgate/usage": {prompt_tokens, completion_tokens}}` in the last event's metadata |
 * | `parts` | a completed task whose artifact has a part of every kind |
 * | `mirror` | a completed task whose artifact has the parts of the message |
 * | `big n` | a completed task with an artifact of n characters |
 * | `odd …` | see `odd-answers.ts` |
 * | anything else | the same as `task` |
 */
export interface FixtureExecutor extends AgentExecutor {
  readonly waiting: readonly string[];
  onWaiting(listener: (taskId: string) => void): void;
  progress(taskId: string, text: string): void;
  finish(taskId: string, state: EndState): void;
}

interface Run {
  readonly ids: TaskIds;
  readonly bus: ExecutionEventBus;
  readonly text: string;
  readonly asked: Message;
}

interface Wait extends Run {
  readonly stubborn: boolean;
  readonly done: () => void;
}

const ANSWER = 'answer-1';
const wordsOf = (text: string) => text.split(' ').slice(1).join(' ');
const numbersOf = (text: string) => text.split(' ').slice(1).map(Number);
const usageOf = (text: string) => {
  const [prompt = 0, completion = 0] = numbersOf(text);
  return { 'tollgate/usage': { prompt_tokens: prompt, completion_tokens: completion } };
};

function publishState(
  { bus, ids }: Pick<Run, 'bus' | 'ids'>,
  state: TaskState,
  words?: string,
  metadata?: Record<string, unknown>,
): void {
  const status = statusOf(state, words === undefined ? undefined : agentMessage(ids, words));
  bus.publish(AgentEvent.statusUpdate({ taskId: ids.taskId, contextId: ids.contextId, status, metadata }));
}

function publishText(
  { bus, ids }: Pick<Run, 'bus' | 'ids'>,
  text: string,
  flags: { append: boolean; lastChunk: boolean },
): void {
  const artifact = artifactOf(ANSWER, [textPart(text)]);
  bus.publish(
    AgentEvent.artifactUpdate({
      taskId: ids.taskId,
      contextId: ids.contextId,
      artifact,
      ...flags,
      metadata: undefined,
    }),
  );
}

const COMPLETED = TaskState.TASK_STATE_COMPLETED;
const WHOLE = { append: false, lastChunk: true };

function complete(run: Run, text: string, metadata?: Record<string, unknown>): void {
  publishText(run, text, WHOLE);
  publishState(run, COMPLETED, undefined, metadata);
}

function completeWithParts(run: Run, parts: Message['parts']): void {
  const { taskId, contextId } = run.ids;
  run.bus.publish(
    AgentEvent.artifactUpdate({
      taskId,
      contextId,
      artifact: artifactOf(ANSWER, parts),
      ...WHOLE,
      metadata: undefined,
    }),
  );
  publishState(run, COMPLETED);
}

function streamChunks(run: Run): void {
  const [count = 1] = numbersOf(run.text);
  for (let step = 1; step <= count; step += 1) {
    publishState(run, TaskState.TASK_STATE_WORKING, `step ${step}`);
    publishText(run, `chunk ${step} `, { append: step > 1, lastChunk: step === count });
  }
  publishState(run, COMPLETED);
}

export function createExecutor(): FixtureExecutor {
  const waits = new Map<string, Wait>();
  const listeners = new Set<(taskId: string) => void>();

  const waitFor = (run: Run, stubborn: boolean) =>
    new Promise<void>((resolve) => {
      waits.set(run.ids.taskId, { ...run, stubborn, done: resolve });
      for (const listener of listeners) listener(run.ids.taskId);
    });
  const waitingAt = (taskId: string) => {
    const wait = waits.get(taskId);
    if (!wait) throw new Error(`no task ${taskId} waits; waiting: ${[...waits.keys()].join(', ') || 'none'}`);
    return wait;
  };
  const endWait = (wait: Wait, state: EndState) => {
    waits.delete(wait.ids.taskId);
    if (state === 'completed') complete(wait, 'finished');
    else publishState(wait, stateOf(state), `told to be ${state}`);
    wait.done();
  };

  const commands: Readonly<Record<string, (run: Run) => void | Promise<void>>> = {
    stream: streamChunks,
    slow: async (run) => {
      const [ms = 0] = numbersOf(run.text);
      await new Promise((resolve) => setTimeout(resolve, ms));
      complete(run, `after ${ms} ms`);
    },
    wait: (run) => waitFor(run, false),
    stubborn: (run) => waitFor(run, true),
    ask: (run) => publishState(run, TaskState.TASK_STATE_INPUT_REQUIRED, 'Which one?'),
    auth: (run) => publishState(run, TaskState.TASK_STATE_AUTH_REQUIRED, 'Sign in first.'),
    fail: (run) => publishState(run, TaskState.TASK_STATE_FAILED, 'it did not work'),
    reject: (run) => publishState(run, TaskState.TASK_STATE_REJECTED, 'it will not do that'),
    usage: (run) => complete(run, 'counted', usageOf(run.text)),
    parts: (run) => completeWithParts(run, everyPart()),
    mirror: (run) => completeWithParts(run, run.asked.parts),
    big: (run) => complete(run, 'x'.repeat(numbersOf(run.text)[0] ?? 0)),
  };

  return {
    get waiting() {
      return [...waits.keys()];
    },
    onWaiting: (listener) => void listeners.add(listener),
    progress: (taskId, text) => publishText(waitingAt(taskId), text, { append: true, lastChunk: false }),
    finish: (taskId, state) => endWait(waitingAt(taskId), state),

    async execute({ userMessage, taskId, contextId, task }: RequestContext, bus) {
      const first = userMessage.parts[0]?.content;
      const text = first?.$case === 'text' ? first.value : '';
      const run: Run = { ids: { taskId, contextId }, bus, text, asked: userMessage };
      const word = text.split(' ', 1)[0] ?? '';
      if (!task && (word === 'echo' || word === 'echo-usage')) {
        const metadata = word === 'echo' ? undefined : usageOf(text);
        bus.publish(AgentEvent.message(agentMessage({ contextId }, wordsOf(text), metadata)));
        return;
      }
      bus.publish(
        AgentEvent.task(
          task ? { ...task, status: statusOf(TaskState.TASK_STATE_WORKING) } : newTask(run.ids, userMessage),
        ),
      );
      if (!task) publishState(run, TaskState.TASK_STATE_WORKING);
      const command = commands[word];
      if (command) await command(run);
      else complete(run, task ? `answered: ${text}` : wordsOf(text));
    },

    async cancelTask(taskId, bus) {
      const wait = waits.get(taskId);
      if (wait?.stubborn === true) throw new TaskNotCancelableError(`task ${taskId} does not let itself be cancelled`);
      if (wait) endWait(wait, 'canceled');
      // A task that waits for its client has no running executor.
      else publishState({ bus, ids: { taskId, contextId: '' } }, TaskState.TASK_STATE_CANCELED);
    },
  };
}

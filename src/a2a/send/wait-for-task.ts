import { setTimeout as sleep } from 'node:timers/promises';
import { UpstreamFailure } from '#wire';
import type { ReplyEnd, Send } from '#gateway';
import { askOfTask } from '../agent/ask-for-task.ts';
import { observationOf } from '../tasks/agent-tasks.ts';
import { A2A_ERRORS, A2aError } from '../wire/errors.ts';
import { isInterrupted, isTerminal } from '../wire/events.ts';
import { endedElsewhere } from './cut-task.ts';
import { isTooLarge, toEnd } from './ending.ts';
import { type RunningTask, type SentMessage, update } from './sent-message.ts';

/** Errors of an agent that never shows a task, so that retries are useless. */
const UNSHOWN: ReadonlySet<number> = new Set([A2A_ERRORS.MethodNotFound.code, A2A_ERRORS.UnsupportedOperation.code]);

const WAIT_MIN_MS = 500;
const WAIT_MAX_MS = 5_000;

/**
 * Polls the task after its stream or answer has ended, for a client that cannot ask for the task. Ends when the task
 * ends or asks for input.
 */
export async function* waitForTask(
  message: SentMessage,
  task: RunningTask,
  send: Send,
  ending: AbortSignal,
): AsyncGenerator<Uint8Array, ReplyEnd, undefined> {
  for (let pauseMs = WAIT_MIN_MS; ; pauseMs = Math.min(pauseMs * 2, WAIT_MAX_MS)) {
    await sleep(pauseMs, undefined, { signal: ending });
    let step: ReplyEnd | string | null;
    try {
      step = await poll(message, task, send);
    } catch (error) {
      if (ending.aborted || isTooLarge(error)) throw error;
      if (error instanceof A2aError)
        throw new Error(`the agent does not show its task: ${error.message}`, { cause: error });
      if (!(error instanceof UpstreamFailure)) message.deps.onError(error);
      continue;
    }
    if (typeof step === 'string') yield Buffer.from(step);
    else if (step !== null) return step;
  }
}

/** Returns the end of the call, the task as text if it has given output, or null if nothing has changed. */
async function poll(message: SentMessage, task: RunningTask, send: Send): Promise<ReplyEnd | string | null> {
  const { deps, measuring } = message;
  const { offer, link, key } = task;
  const shown = await askOfTask(message.asking(task, send), 'get');
  if (shown.kind === 'error') {
    if (shown.error.code === A2A_ERRORS.TaskNotFound.code) return message.lost(key, shown.error);
    if (UNSHOWN.has(shown.error.code)) throw new A2aError('UnsupportedOperation', shown.error.message);
    return null;
  }
  const { event } = shown;
  const text = message.textOf(link, shown.value);
  const tail = { text, event, error: null, cut: null };
  if (isTerminal(event.state)) return message.over(task, tail, Math.max(measuring.bytes, Buffer.byteLength(text)));
  if (event.state !== task.state || (event.output && !task.gave)) {
    const observation = observationOf(offer, event, task.gave, measuring.bytes);
    const seen = observation && (await deps.tasks.saw(key, observation));
    if (seen?.task.live === false) return endedElsewhere(deps, message.call, key);
  }
  update(task, event);
  if (isInterrupted(event.state)) return toEnd(offer, event, tail, message.sofar(task.gave));
  return event.output ? text : null;
}

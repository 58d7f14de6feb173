import { UpstreamFailure } from '#wire';
import type { Offer, Send } from '#gateway';
import type { Task } from '#tasks';
import { askOfTask } from '../agent/ask-of-task.ts';
import type { Cards } from '../cards/card-cache.ts';
import { chooseLink } from '../agent/link.ts';
import { versionIn } from './tasks-of-agents.ts';
import { isTerminal } from '../wire/events.ts';
import { translateResult } from '../wire/translate.ts';

interface TaskBeforeDeps {
  readonly cards: Pick<Cards, 'facts'>;
  readonly replyBytesMax: number;
}

/** The longest time that a message waits for this look. */
const POLL_MS = 3_000;

/**
 * The task that a message will continue, as an event of 1.0. It is needed for agents that do not stream, because they
 * answer with the whole task, including the output of earlier rounds. null if the agent streams, since its stream
 * begins with the task, or if the agent does not show the task.
 */
export async function taskBefore(
  deps: TaskBeforeDeps,
  task: Task,
  offer: Offer,
  send: Send,
  requestId: string,
): Promise<unknown> {
  const facts = await deps.cards.facts(offer);
  const link = chooseLink(offer, facts, versionIn(task.notes) ?? '1.0');
  if (facts.streaming) return null;
  try {
    const ask = { send, link, taskId: task.taskId, id: requestId, requestId, replyBytesMax: deps.replyBytesMax };
    const shown = await askOfTask(ask, 'get', POLL_MS);
    if (shown.kind === 'error' || isTerminal(shown.event.state)) return null;
    return translateResult('send', link.version, '1.0', link.version === '1.0' ? { task: shown.value } : shown.value);
  } catch (error) {
    if (error instanceof UpstreamFailure) return null;
    throw error;
  }
}

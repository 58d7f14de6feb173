import type { Send } from '#call';
import type { Offer } from '#catalog';
import { UpstreamFailure } from '#wire';
import type { Task } from '#tasks';
import { broken, readAgent, type AgentSaid } from './agent-reply.ts';
import { agentRequest } from './agent-request.ts';
import { type Link, chooseLink } from './resolve.ts';
import { exactValue } from '../wire/edit-json.ts';
import { readEvent, type A2aEvent, isTerminal } from '../wire/events.ts';
import type { Cards } from '../cards/cards.ts';
import { versionIn } from '../protocol/agent-tasks.ts';
import { translateResult } from '../wire/translate.ts';

export interface AskOfTask {
  readonly send: Send;
  readonly link: Link;
  readonly taskId: string;
  readonly id: string;
  readonly requestId: string;
  readonly replyBytesMax: number;
}

/** How long an agent has for its answer. This is short, because a client's message or answer waits for it. */
const ANSWER_MS = 3_000;

type TaskShown =
  | { readonly kind: 'task'; readonly value: unknown; readonly event: A2aEvent }
  | { readonly kind: 'error'; readonly error: (AgentSaid & { readonly kind: 'error' })['error'] };

/**
 * Asks an agent to show or cancel a task. Rejects with UpstreamFailure if the agent does not answer or answers about
 * another task.
 */
export async function askOfTask(ask: AskOfTask, operation: 'get' | 'cancel', timeoutMs?: number): Promise<TaskShown> {
  const { send, link, taskId, id, requestId, replyBytesMax } = ask;
  const exchange = send(
    agentRequest(link, { operation, version: link.version, params: { id: taskId }, id, requestId }),
  );
  const timer =
    timeoutMs === undefined
      ? undefined
      : setTimeout(() => exchange.abort(broken('the agent does not answer', null)), timeoutMs);
  try {
    const reply = await exchange.head;
    for await (const agentReply of readAgent(link, id, reply, replyBytesMax)) {
      if (agentReply.kind === 'error') return agentReply;
      const event = readEvent(link.version, agentReply.value);
      if (event === null || event.taskId !== taskId) throw broken('the agent answered with another task', reply.status);
      return { kind: 'task', value: exactValue(agentReply.text, agentReply.value), event };
    }
    throw broken('the agent ended its answer without any content', reply.status);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Asks an agent to cancel a task. Resolves with the ended task as the agent shows it, which may have ended in another
 * way meanwhile, or with null if that is not known. Never rejects, because nothing depends on the cancellation.
 */
export async function cancelAtAgent(ask: AskOfTask): Promise<(TaskShown & { readonly kind: 'task' }) | null> {
  for (const operation of ['cancel', 'get'] as const) {
    try {
      const task = await askOfTask(ask, operation, ANSWER_MS);
      if (task.kind === 'task') return isTerminal(task.event.state) ? task : null;
    } catch {
      return null;
    }
  }
  return null;
}

/** Bytes of a task as its agent shows it; 0 if the agent does not show it. Rejects with UpstreamFailure. */
export async function bytesOfTask(ask: AskOfTask): Promise<number> {
  const task = await askOfTask(ask, 'get', ANSWER_MS);
  return task.kind === 'task' ? Buffer.byteLength(JSON.stringify(task.value)) : 0;
}

interface TaskBeforeDeps {
  readonly cards: Pick<Cards, 'facts'>;
  readonly replyBytesMax: number;
}

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
    const current = await askOfTask(ask, 'get', ANSWER_MS);
    if (current.kind === 'error' || isTerminal(current.event.state)) return null;
    return translateResult(
      'send',
      link.version,
      '1.0',
      link.version === '1.0' ? { task: current.value } : current.value,
    );
  } catch (error) {
    if (error instanceof UpstreamFailure) return null;
    throw error;
  }
}

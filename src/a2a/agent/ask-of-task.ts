import type { Send } from '#gateway';
import { broken, readAgent, type AgentSaid } from './agent-reply.ts';
import { agentRequest } from './agent-request.ts';
import type { Link } from './link.ts';
import { exactValue } from '../wire/edit-json.ts';
import { readEvent, type A2aEvent, isTerminal } from '../wire/events.ts';

export interface AskOfTask {
  readonly send: Send;
  readonly link: Link;
  readonly taskId: string;
  /** Id of the call. */
  readonly id: string;
  readonly requestId: string;
  readonly replyBytesMax: number;
}

/** A task as its agent shows it, or the agent's error. */
type TaskShown =
  | { readonly kind: 'task'; readonly value: unknown; readonly event: A2aEvent }
  | { readonly kind: 'error'; readonly error: (AgentSaid & { readonly kind: 'error' })['error'] };

/**
 * Asks an agent to show or cancel a task. Rejects with UpstreamFailure if the agent does not answer or answers about
 * another task.
 */
export async function askOfTask(ask: AskOfTask, operation: 'get' | 'cancel', timeoutMs?: number): Promise<TaskShown> {
  const { send, link, taskId, id, requestId, replyBytesMax } = ask;
  const params = { id: taskId };
  const asked = {
    operation,
    version: link.version,
    params,
    paramsText: JSON.stringify(params),
    id,
    requestId,
    extensions: null,
    run: null,
  } as const;
  const exchange = send(agentRequest(link, asked));
  const timer =
    timeoutMs === undefined
      ? undefined
      : setTimeout(() => exchange.abort(broken('the agent does not answer', null)), timeoutMs);
  try {
    const reply = await exchange.head;
    for await (const said of readAgent(link, id, reply, replyBytesMax)) {
      if (said.kind === 'error') return said;
      const event = readEvent(link.version, said.value);
      if (event === null || event.taskId !== taskId) throw broken('the agent answered with another task', reply.status);
      return { kind: 'task', value: exactValue(said.text, said.value), event };
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
      // oxlint-disable-next-line no-await-in-loop -- it is looked at where it could not be canceled
      const shown = await askOfTask(ask, operation, CANCEL_MS);
      if (shown.kind === 'task') return isTerminal(shown.event.state) ? shown : null;
    } catch {
      return null;
    }
  }
  return null;
}

/** Short, because the end of the answer waits for this request. */
const CANCEL_MS = 3_000;

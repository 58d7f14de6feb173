import { membersOf, splice, withMembers } from '#wire';
import type { Call, ReplyEnd } from '#call';
import type { Offer } from '#catalog';
import { ownerOf, type Tasks } from '#tasks';
import type { McpResponse, McpRequest } from '../request/mcp-request.ts';
import { providerFailure } from '../request/ending.ts';
import { lifetimeOf, pauseOf, shownTtlMs, readTask, clientTaskId } from './server-task.ts';

export interface KeepTaskDeps {
  readonly tasks: Pick<Tasks, 'begin' | 'admit'>;
  readonly ttlMs: number;
}

/** The call that was answered with a task. `askedAt`: when its first round was sent, in epoch milliseconds. */
interface CallOfTask {
  readonly call: Call;
  readonly askedAt: number;
}

export interface TaskNotes {
  readonly tool: string;
}

/**
 * The end of a `tools/call` that was answered with a task, for a client that accepts tasks. The lock of the call is
 * kept with the task before the client gets the answer. Rejects with UpstreamFailure for a task that cannot be read, or
 * that has the id of another task.
 */
export async function keepTask(
  { tasks, ttlMs }: KeepTaskDeps,
  mcpRequest: McpRequest,
  offer: Offer,
  { call, askedAt }: CallOfTask,
  end: ReplyEnd<McpResponse>,
): Promise<ReplyEnd<McpResponse>> {
  const { text, status, eventId = null, message } = end.result;
  const task = readTask(message?.result);
  if (task === null) throw providerFailure("the provider's task has no status that the protocol knows", status);
  const taskId = clientTaskId(offer.id, task.taskId);
  if (taskId === null) throw providerFailure("the provider's task has no id of 1 to 247 characters", status);
  const members = { taskId: JSON.stringify(taskId), ttlMs: String(shownTtlMs(task.ttlMs, ttlMs)) };
  const response: McpResponse = {
    text: splice(text, [withMembers(text, membersOf(text).get('result')!, members)]),
    status,
    eventId,
    pending: true,
  };
  const { price, estimate: most } = call.candidates.find(({ offer: { id } }) => id === offer.id)!;
  const notes: TaskNotes = { tool: String(mcpRequest.message.params?.['name']) };
  const begun = await tasks.begin(
    {
      primitive: 'tool',
      service: offer.service,
      taskId,
      ...ownerOf(call.caller),
      offerId: offer.id,
      provider: offer.provider.id,
      contextId: null,
      state: task.state,
      notes: JSON.stringify(notes),
      askedAt,
      messageBytes: Buffer.byteLength(mcpRequest.message.text),
      ttlMs: lifetimeOf(task.ttlMs, ttlMs),
      pauseMs: pauseOf(task.pollMs),
    },
    { callId: call.id, price: price.id, most },
  );
  if (begun !== 'begun') throw providerFailure("the provider's task has the id of another task", status);
  return { ...end, outcome: 'pending', flags: [], result: response };
}

import { editText, type JsonObject } from '#wire';
import { pinned } from '#catalog';
import { OWN_ACCOUNT, type Caller } from '#accounts';
import { runFree, type Pipeline } from '#call';
import { ownerOf, type TaskPoll, type Observation, type Task, type TaskKey, type Tasks } from '#tasks';
import type { A2aRequest } from '../protocol/parse-request.ts';
import type { ReplyWriter } from '../protocol/reply-writer.ts';
import { withLarge } from '../protocol/ending.ts';
import type { ListenToTask } from './listen-to-task.ts';
import { createTaskAdapter, type TaskAdapterDeps } from './task-adapter.ts';
import { withTaskCost } from '../protocol/metadata.ts';
import { beganBy, BRIDGED, keyOf } from '../protocol/agent-tasks.ts';
import { A2aError } from '../wire/errors.ts';
import { methodOf } from '../wire/protocol.ts';
import { stateName, stateOf } from '../wire/events.ts';
import { translateResult } from '../wire/translate.ts';
import { exactly } from '../wire/edit-json.ts';

export interface RunTaskDeps extends TaskAdapterDeps {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run' | 'lookUp'>;
  /** The name under which the tasks of an agent are stored. Throws GatewayError `invalid_model`. */
  readonly nameOf: (name: string) => string;
  readonly tasks: Tasks;
  readonly listen: ListenToTask;
}

/** The caller's task with the id in a request. Throws A2aError `TaskNotFound`, also for a task of another caller. */
export async function taskOf(
  { nameOf, tasks }: Pick<RunTaskDeps, 'nameOf' | 'tasks'>,
  ask: A2aRequest,
  id: unknown,
): Promise<Task> {
  const service = nameOf(ask.service);
  if (typeof id !== 'string' || id === '')
    throw new A2aError('InvalidParams', 'The id of a task is missing: give it as a string', { param: 'id' });
  const task = await tasks.find(keyOf(service, id), ownerOf(ask.caller));
  if (task === null) throw new A2aError('TaskNotFound', 'Task not found', { metadata: { taskId: id } });
  return task;
}

/** Answers `tasks/get`, `tasks/cancel`, `tasks/resubscribe` and their names in 1.0, for the caller's own tasks. */
export async function runTask(
  deps: RunTaskDeps,
  ask: A2aRequest,
  reply: ReplyWriter,
  gone: AbortSignal,
): Promise<void> {
  const task = await taskOf(deps, ask, ask.params['id']);
  const { operation } = ask;
  const { historyLength } = ask.params;
  if (
    historyLength !== undefined &&
    historyLength !== null &&
    !(Number.isSafeInteger(historyLength) && (historyLength as number) >= 0)
  )
    throw new A2aError('InvalidParams', 'historyLength must be a whole number of at least 0', {
      param: 'historyLength',
    });
  if (task.snapshot !== null || task.notes === BRIDGED) return showSnapshot(deps, ask, task, reply);
  if (!task.live && operation === 'cancel')
    throw new A2aError('TaskNotCancelable', `The task is ${task.state} and cannot be canceled any more`, {
      metadata: { taskId: task.taskId },
    });
  if (!task.live && operation === 'subscribe') {
    if (ask.version === '1.0')
      throw new A2aError(
        'UnsupportedOperation',
        `The task is ${task.state} and has no more events. Read it with GetTask`,
      );
    return showTask(deps, ask, task.taskId, reply, gone);
  }
  if (operation === 'subscribe') return deps.listen(ask, task, reply, gone);
  const result = await runFree(
    deps.pipeline,
    {
      primitive: 'agent',
      caller: ask.caller,
      requestId: ask.requestId,
      target: pinned(task.offerId),
      method: nameOfFree(operation),
      startAttempt: createTaskAdapter(deps, { ...ask, takesLarge: true }, task).startAttempt,
      traceparent: ask.traceparent,
      facts: () => ({ 'a2a.protocol.version': ask.version }),
    },
    gone,
  );
  if (result === null) return;
  if (result.error !== null) await reply.refused(result.error);
  else await reply.result(withLarge(result.text!, result.large));
}

/** The name of a free call in logs and figures: the method of 0.3, or our own name if 0.3 has none. */
const nameOfFree = (operation: A2aRequest['operation']): string => methodOf('0.3', operation) ?? `tasks/${operation}`;

/** Shows a task of the caller in its present state, for any operation. */
export async function showTask(
  deps: RunTaskDeps,
  ask: A2aRequest,
  taskId: string,
  reply: ReplyWriter,
  gone: AbortSignal,
): Promise<void> {
  const params: JsonObject = { id: taskId };
  const events = ask.operation === 'stream' || ask.operation === 'subscribe' || ask.operation === 'send';
  const writer: ReplyWriter = !events
    ? reply
    : {
        ...reply,
        // In 1.0 the result of a send is wrapped, and the result of a get is not.
        result: (content) =>
          reply.result(ask.version === '1.0' ? editText(content, (text) => `{"task":${text}}`) : content),
      };
  return runTask(deps, { ...ask, operation: 'get', params, paramsText: JSON.stringify(params) }, writer, gone);
}

/** Shows a task that no agent stores, from its stored snapshot, which has the form of 1.0. */
async function showSnapshot(
  { tasks }: Pick<RunTaskDeps, 'tasks'>,
  { operation, version, wantsReceipt }: A2aRequest,
  task: Task,
  reply: ReplyWriter,
): Promise<void> {
  const { state, live } = task;
  if (operation === 'cancel')
    throw new A2aError('TaskNotCancelable', `The task is ${state} and cannot be canceled${live ? '' : ' any more'}`);
  if (operation === 'subscribe' && version === '1.0')
    throw new A2aError('UnsupportedOperation', `The task is ${state} and has no more events. Read it with GetTask`);
  const text = JSON.stringify(translateResult('get', '1.0', version, notedTask(task)));
  const began = beganBy(task);
  await reply.result(withTaskCost(text, began, live ? null : await tasks.costOf(task, beganBy), wantsReceipt));
}

export function notedTask({ snapshot, taskId, contextId, state, updatedAt }: Task): unknown {
  if (snapshot !== null) return exactly(snapshot);
  const status = { state: stateName(stateOf(state)), timestamp: new Date(updatedAt).toISOString() };
  return { id: taskId, ...(contextId === null ? {} : { contextId }), status };
}

/** Creates the looks of the gateway at tasks, which find the end of a task even without a client. */
export function createPoll(deps: RunTaskDeps & { readonly onError: (error: unknown) => void }): TaskPoll {
  return async (task, signal, whole = false) => {
    const { taskId, service, offerId, account, notes, output } = task;
    // A bridged task exists at no agent, so nobody can be asked for it.
    if (notes === BRIDGED) return null;
    const params: JsonObject = { id: taskId, ...(whole ? {} : { historyLength: 0 }) };
    const caller: Caller = { account: OWN_ACCOUNT, key: null, wallet: null };
    const ask = {
      operation: 'get',
      version: '1.0',
      params,
      paramsText: JSON.stringify(params),
      requestId: `look-${taskId.slice(0, 64)}`,
      extensions: null,
      polls: true,
      takesLarge: true,
    } as const;
    let seen: Observation | null = null;
    // The caller of the poll stores the observation. An end is stored and settled here too, because the webhooks of
    // clients are notified of it right after, with the cost.
    const tasks = {
      saw: async (key: TaskKey, observation: NonNullable<typeof seen>) => {
        seen = observation;
        return observation.end === null || whole ? null : deps.tasks.saw(key, observation);
      },
      costOf: async () => null,
    };
    // A look for the bytes of a task follows a notification of its agent, which is passed on by itself.
    const notify = whole ? () => {} : deps.notify;
    const adapter = createTaskAdapter({ ...deps, tasks, notify }, ask, { service, taskId, live: true, notes, output });
    try {
      const result = await runFree(
        deps.pipeline,
        {
          primitive: 'agent',
          caller,
          requestId: ask.requestId,
          target: pinned(offerId),
          method: 'tasks/get',
          startAttempt: adapter.startAttempt,
          timeoutMs: POLL_MS,
        },
        signal,
      );
      return seen ?? (result?.event ? { state: result.event.state ?? 'unknown', end: null } : null);
    } catch (error) {
      deps.onError(
        new Error(`task ${taskId.slice(0, 64)} of ${account} at ${service} could not be read`, { cause: error }),
      );
      return seen;
    }
  };
}

const POLL_MS = 20_000;

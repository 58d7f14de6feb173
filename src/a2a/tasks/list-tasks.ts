import type { JsonObject } from '#wire';
import { pinned } from '#catalog';
import { runFree } from '#call';
import { ownerOf, type Task } from '#tasks';
import type { A2aRequest } from '../protocol/parse-request.ts';
import type { ReplyWriter } from '../protocol/reply-writer.ts';
import { AGENT_KEY, withMetadata } from '../protocol/metadata.ts';
import { notedTask, type RunTaskDeps } from './run-task.ts';
import { BRIDGED } from '../protocol/agent-tasks.ts';
import { createTaskAdapter } from './task-adapter.ts';
import { A2aError } from '../wire/errors.ts';
import { stateOf } from '../wire/events.ts';
import { exactly } from '../wire/edit-json.ts';

const PAGE_DEFAULT = 50;
const PAGE_MAX = 100;
const AT_ONCE = 8;
const TEXT_MAX = 1_024;
/** Page tokens may be longer, because they contain the id of a task. */
const PAGE_TOKEN_MAX = 4_096;

interface ListParams {
  readonly contextId: string | null;
  readonly state: string | null;
  readonly since: number | null;
  readonly pageSize: number;
  readonly pageToken: string | null;
  readonly historyLength: number | null;
  readonly includeArtifacts: boolean;
}

const PAGE_NAMES = { after: 'pageToken', next: 'nextPageToken' };

/**
 * Answers `ListTasks`: the caller's own tasks, each as its agent shows it. The list comes from the gateway's stored
 * tasks, because agents do not know the owners of their tasks. If the agent no longer shows a task, or the task is very
 * large, the stored data is shown.
 */
export async function listTasks(
  deps: RunTaskDeps,
  ask: A2aRequest,
  reply: ReplyWriter,
  gone: AbortSignal,
): Promise<void> {
  const service = ask.service === '' ? null : deps.nameOf(ask.service);
  const { pageSize, pageToken, contextId, state, since, historyLength, includeArtifacts } = readList(ask.params);
  const page = await deps.tasks.list(ownerOf(ask.caller), {
    primitive: 'agent',
    service,
    contextId,
    state,
    since,
    after: pageToken,
    limit: pageSize,
    pageNames: PAGE_NAMES,
  });
  const tasks: string[] = [];
  let chars = 0;
  for (let from = 0; from < page.tasks.length; from += AT_ONCE) {
    const group = page.tasks.slice(from, from + AT_ONCE);
    const full = chars > LIST_CHARS_MAX;
    const seen = await Promise.all(
      group.map((task) => (full ? notedTask(task) : showList(deps, ask, task, historyLength, gone))),
    );
    const texts = seen.map((task, index) => {
      const text = JSON.stringify(includeArtifacts ? task : withoutArtifacts(task as JsonObject));
      // In a list over all agents each task names its agent.
      return service === null ? withMetadata(text, { [AGENT_KEY]: JSON.stringify(group[index]!.service) }) : text;
    });
    chars += texts.reduce((sum, { length }) => sum + length, 0);
    tasks.push(...texts);
  }
  const rest = JSON.stringify({ nextPageToken: page.next ?? '', pageSize, totalSize: page.total });
  await reply.result(`{"tasks":[${tasks.join(',')}],${rest.slice(1)}`);
}

/** A bound for all tasks of a page together. The tasks after it are shown from the stored data. */
const LIST_CHARS_MAX = 16 * 1024 * 1024;
/** A bound for one task, because several tasks are requested at the same time. */
const SHOWN_BYTES_MAX = 8 * 1024 * 1024;

async function showList(
  deps: RunTaskDeps,
  { caller, requestId, version }: A2aRequest,
  task: Task,
  historyLength: number | null,
  gone: AbortSignal,
): Promise<unknown> {
  if (task.snapshot !== null || task.notes === BRIDGED) return notedTask(task);
  const params: JsonObject = { id: task.taskId, ...(historyLength === null ? {} : { historyLength }) };
  const ask = {
    operation: 'get',
    version,
    params,
    paramsText: JSON.stringify(params),
    requestId,
    extensions: null,
  } as const;
  try {
    const result = await runFree(
      deps.pipeline,
      {
        primitive: 'agent',
        caller,
        requestId,
        target: pinned(task.offerId),
        method: 'tasks/get',
        startAttempt: createTaskAdapter(
          { ...deps, replyBytesMax: Math.min(deps.replyBytesMax, SHOWN_BYTES_MAX) },
          ask,
          task,
        ).startAttempt,
        timeoutMs: SHOW_MS,
      },
      gone,
    );
    if (result?.text) return exactly(result.text);
  } catch {
    // The agent is offline or broken, so the stored task is the best answer.
  }
  return notedTask(task);
}

const SHOW_MS = 10_000;

function withoutArtifacts(content: JsonObject): JsonObject {
  const { artifacts: _artifacts, ...task } = content;
  return task;
}

/** Reads the parameters of `ListTasks`, which only 1.0 has. Throws A2aError `InvalidParams`. */
function readList(params: JsonObject): ListParams {
  const { contextId, status, pageSize, pageToken, historyLength, statusTimestampAfter, includeArtifacts } = params;
  const fault = (param: string, right: string) => new A2aError('InvalidParams', `${param} must be ${right}`, { param });
  const text = (value: unknown, param: string, charsMax = TEXT_MAX): string | null => {
    if (value === undefined || value === null || value === '') return null;
    if (typeof value !== 'string' || value.length > charsMax)
      throw fault(param, `a string of at most ${charsMax} characters`);
    return value;
  };
  const count = (value: unknown, param: string, least: number, most: number): number | null => {
    if (value === undefined || value === null) return null;
    if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < least || value > most)
      throw fault(param, `a whole number from ${least} to ${most}`);
    return value;
  };
  const after = text(statusTimestampAfter, 'statusTimestampAfter');
  const since = after === null ? null : Date.parse(after);
  if (Number.isNaN(since)) throw fault('statusTimestampAfter', 'a time, such as "2026-01-31T12:00:00Z"');
  if (includeArtifacts !== undefined && includeArtifacts !== null && typeof includeArtifacts !== 'boolean')
    throw fault('includeArtifacts', 'true or false');
  const state =
    status === undefined || status === null || status === '' || status === 'TASK_STATE_UNSPECIFIED'
      ? null
      : stateOf(status);
  if (state === 'unknown') throw fault('status', 'a state such as "TASK_STATE_WORKING"');
  return {
    contextId: text(contextId, 'contextId'),
    state,
    since,
    // ProtoJSON writes 0 for an absent value.
    pageSize: count(pageSize, 'pageSize', 0, PAGE_MAX) || PAGE_DEFAULT,
    pageToken: text(pageToken, 'pageToken', PAGE_TOKEN_MAX),
    historyLength: count(historyLength, 'historyLength', 0, 1_000_000),
    includeArtifacts: includeArtifacts === true,
  };
}

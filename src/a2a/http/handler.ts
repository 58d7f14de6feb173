import { mayAsk, withContent } from '#accounts';
import { isObject, membersOf, splice, withMembers } from '#wire';
import { authorise } from '#call';
import type { Catalog } from '#catalog';
import { ownerOf, type Tasks } from '#tasks';
import type { A2aRequest } from '../protocol/parse-request.ts';
import type { ReplyWriter } from '../protocol/reply-writer.ts';
import { noExtendedCard } from '../send/extended-card.ts';
import { listTasks } from '../tasks/list-tasks.ts';
import { AGENT_KEY } from '../protocol/metadata.ts';
import { resolveAgent, unknownAgent } from '../agent/resolve.ts';
import type { RunSend } from '../send/run-send.ts';
import { runTask, type RunTaskDeps } from '../tasks/run-task.ts';
import { A2aError } from '../wire/errors.ts';
import type { A2aOperation } from '../wire/protocol.ts';

/** Answers one request to one agent. Never throws: errors become the answer. */
export type A2aHandler = (ask: A2aRequest, reply: ReplyWriter, gone: AbortSignal) => Promise<void>;

interface HandlerDeps {
  readonly catalog: Pick<Catalog, 'resolve' | 'offers'>;
  readonly tasks: Tasks;
  readonly taskDeps: RunTaskDeps;
  readonly runSend: RunSend;
  readonly push: (ask: A2aRequest, reply: ReplyWriter) => Promise<void>;
  readonly card: (ask: A2aRequest, reply: ReplyWriter) => Promise<void>;
  /** The handler of a model or tool that is called as an agent; null for an agent. Throws for an unknown name. */
  readonly bridged: (ask: A2aRequest) => ((reply: ReplyWriter) => Promise<void>) | null;
}

/** Handles every operation of A2A. If the address names no agent, the agent is taken from the request. */
export function createHandler(deps: HandlerDeps): A2aHandler {
  const table: Readonly<
    Record<A2aOperation, (ask: A2aRequest, reply: ReplyWriter, gone: AbortSignal) => Promise<void>>
  > = {
    send: deps.runSend,
    stream: deps.runSend,
    get: (ask, reply, gone) => runTask(deps.taskDeps, ask, reply, gone),
    cancel: (ask, reply, gone) => runTask(deps.taskDeps, ask, reply, gone),
    subscribe: (ask, reply, gone) => runTask(deps.taskDeps, ask, reply, gone),
    list: (ask, reply, gone) => listTasks(deps.taskDeps, ask, reply, gone),
    'push-set': deps.push,
    'push-get': deps.push,
    'push-list': deps.push,
    'push-delete': deps.push,
    card: deps.card,
  };
  return async (request, reply, gone) => {
    try {
      const service = request.service === '' ? await agentIn(deps, request) : request.service;
      if (service === null) return await listTasks(deps.taskDeps, request, reply, gone);
      const { caller: sender } = request;
      const caller = mayAsk(sender) ? withContent(sender, service, contentOf(request)) : sender;
      const ask = { ...request, service, caller };
      const bridged = await bridgedAt(deps, ask);
      if (bridged !== null && (ask.operation === 'send' || ask.operation === 'stream')) return await bridged(reply);
      if (bridged !== null && ask.operation === 'card') throw noExtendedCard(ask.version, ask.service);
      // Stored tasks are shown without a call, so the authorisation of calls does not cover them.
      if (bridged === null) authorise(ask.caller, 'agent', resolveAgent(deps.catalog, ask.service).service);
      await table[ask.operation](ask, reply, gone);
    } catch (error) {
      await reply.fail(error);
    }
  };
}

/** The parameters of a request as they are written, without the id of the message, which is another in each repeat. */
function contentOf({ paramsText: text }: Pick<A2aRequest, 'paramsText'>): string {
  const message = text === '' ? undefined : membersOf(text).get('message');
  if (message === undefined || text[message.start] !== '{') return '';
  return splice(text, [withMembers(text, message, { messageId: null, message_id: null })]);
}

/**
 * Calls `deps.bridged`. For an unknown name, waits until this gateway knows the names that other gateways know, and
 * tries once more. Rejects if the name is still unknown.
 */
async function bridgedAt(
  { bridged, taskDeps }: HandlerDeps,
  ask: A2aRequest,
): Promise<((reply: ReplyWriter) => Promise<void>) | null> {
  try {
    return bridged(ask);
  } catch (error) {
    const known = taskDeps.pipeline.lookUp(ask.service, 'agent');
    if (known === null) throw error;
    await known;
    return bridged(ask);
  }
}

/**
 * Finds the agent of a request to the address of all agents: by metadata, by `tenant` (1.0), by its task, or because
 * only one agent exists. null: the request is a list of the tasks of all agents.
 */
async function agentIn(
  { catalog, tasks }: HandlerDeps,
  { params, caller, operation }: A2aRequest,
): Promise<string | null> {
  const message = params['message'];
  for (const holder of [params['metadata'], isObject(message) ? message['metadata'] : undefined]) {
    const agent = isObject(holder) ? holder[AGENT_KEY] : undefined;
    if (typeof agent === 'string' && agent !== '') return agent;
  }
  const { tenant } = params;
  if (typeof tenant === 'string' && tenant !== '') return tenant;
  const taskId = isObject(message)
    ? message['taskId']
    : operation.startsWith('push-')
      ? (params['taskId'] ?? params['id'])
      : params['id'];
  if (typeof taskId === 'string' && taskId !== '') {
    const matches = await tasks.findAll('agent', taskId, ownerOf(caller));
    // Agents choose the ids of their tasks, so two agents can use the same id.
    if (matches.length > 1) throw whichAgent(matches.map(({ service }) => service));
    if (matches.length === 1) return matches[0]!.service;
    throw new A2aError('TaskNotFound', 'Task not found', { metadata: { taskId } });
  }
  // A key that is limited to some agents can list the tasks of only one agent at a time.
  if (operation === 'list' && !caller.key?.access) return null;
  const access = caller.key?.access;
  const all = [...new Set(catalog.offers('agent').map(({ service }) => service))];
  const names = access ? all.filter((name) => access.allows('agent', name, null)) : all;
  if (names.length === 1) return names[0]!;
  if (names.length === 0) throw unknownAgent('(none)');
  throw whichAgent(names);
}

function whichAgent(names: readonly string[]): A2aError {
  return new A2aError(
    'InvalidParams',
    `No agent is named. Post to /a2a/<agent>, or name it in metadata["${AGENT_KEY}"] (or tenant): ${names.slice(0, 10).join(', ')}${names.length > 10 ? ', …' : ''}`,
    { param: `metadata["${AGENT_KEY}"]` },
  );
}

import { randomUUID } from 'node:crypto';
import { GatewayError } from '#errors';
import { printable } from '#security';
import type { JsonObject } from '#wire';
import { listedServices, pinned, type Catalog } from '#catalog';
import {
  type CallEvent,
  type ContentResult,
  type EventBatch,
  eventBatch,
  type Part,
  type TargetAdapter,
  type TargetRequest,
} from '#bridge';
import { NO_PREFERENCES, type Call, type ReplyEnd } from '#call';
import { ownerOf, type Tasks } from '#tasks';
import { createAnswerReader, type AnswerReader } from './answer-reader.ts';
import type { A2aResult, EventTexts } from '../protocol/ending.ts';
import { toA2aPart, wordsOf } from './parts.ts';
import { lastInContext, isCovered, keyOf, versionIn } from '../protocol/agent-tasks.ts';
import { resolveAgent } from '../agent/resolve.ts';
import { createSendAdapter } from '../send/send-adapter.ts';
import type { SendAdapterDeps } from '../send/sent-message.ts';
import { exactly, exactValue } from '../wire/edit-json.ts';
import { taskBefore } from '../agent/ask-for-task.ts';

interface AgentTargetDeps extends SendAdapterDeps {
  readonly catalog: Pick<Catalog, 'resolve' | 'offers' | 'knows'>;
  readonly tasks: Tasks;
}

/**
 * Speaks to agents in neutral parts, for the routes of other protocols. A call sends one message and returns the output
 * of its task until the task ends or asks for input.
 */
export function createAgentTarget(deps: AgentTargetDeps): TargetAdapter {
  const { catalog, tasks } = deps;
  return {
    primitive: 'agent',
    has: (name) => catalog.knows(name, 'agent'),
    list: (limit) => listedServices(catalog.offers('agent'), limit),
    async toCall(name, ask, { caller, requestId, traceparent, wantsReceipt }) {
      const { service } = resolveAgent(catalog, name, 'model');
      const task = ask.taskId === null ? null : await tasks.find(keyOf(service, ask.taskId), ownerOf(caller));
      if (ask.taskId !== null && task === null)
        throw new GatewayError(
          'invalid_request',
          `This agent has no task ${printable(ask.taskId, 64)}, or the task belongs to another account`,
          { param: 'task_id' },
        );
      const last = task ?? (await lastInContext(tasks, caller, service, ask.contextId));
      const params = { message: messageOf(ask) };
      const covered = isCovered(catalog, task);
      const adapter = createSendAdapter(deps, {
        contextId: ask.contextId,
        operation: 'stream',
        version: '1.0',
        params,
        paramsText: JSON.stringify(params),
        requestId,
        extensions: null,
        taskId: ask.taskId,
        begunIn: task === null ? null : versionIn(task.notes),
        later: task?.live === true,
        covered,
        waits: true,
        pushes: false,
      });
      return {
        primitive: 'agent',
        caller,
        requestId,
        targets: [last === null ? name : pinned(last.offerId)],
        preferences: NO_PREFERENCES,
        stickyKey: ask.contextId === null ? null : `${caller.account} a2a ${ask.contextId}`,
        images: 0,
        stream: ask.stream,
        adapter: {
          begin: (call: Call) => adapter.begin!(call),
          resolved: (state) => adapter.resolved!(state),
          startAttempt: (offer, send, signal, detached) =>
            inEvents(
              adapter.startAttempt(offer, send, signal, detached),
              createAnswerReader(task),
              task?.live ? () => taskBefore(deps, task, offer, send, requestId) : null,
            ),
        },
        free: covered ? 'message/send' : null,
        estimate: ({ priceCap }) => (priceCap !== null && !task?.live ? { costMax: priceCap } : { call: 1n }),
        metadata: null,
        traceparent,
        wantsReceipt,
        // The agent does not see that the client has disconnected.
        outlivesClient: true,
      };
    },
  };
}

/**
 * The message to the agent. Earlier turns are put in front as text, because an agent does not know what other agents
 * said. An agent that continues a context or a task already knows them.
 */
function messageOf({ turns, contextId, taskId }: TargetRequest): JsonObject {
  const last = turns.at(-1)!;
  const before = contextId === null && taskId === null ? turns.slice(0, -1) : [];
  const text = before.map(({ role, parts }) => `${role}: ${wordsOf(parts)}`).join('\n');
  const parts: Part[] = [
    ...(text === '' ? [] : [{ kind: 'text' as const, text: `The conversation so far:\n${text}\n\nNow:` }]),
    ...last.parts,
  ];
  return {
    messageId: randomUUID(),
    role: 'ROLE_USER',
    parts: parts.map(toA2aPart),
    ...(contextId === null ? {} : { contextId }),
    ...(taskId === null ? {} : { taskId }),
  };
}

/**
 * Reads the events of an attempt, which are in A2A 1.0, as one answer. `showBefore` gives the task that the message
 * continues; null if the message continues no task.
 */
async function* inEvents(
  attempt: AsyncGenerator<EventTexts, ReplyEnd<A2aResult>, undefined>,
  answer: AnswerReader,
  showBefore: (() => Promise<unknown>) | null,
): AsyncGenerator<EventBatch, ReplyEnd<ContentResult>, undefined> {
  let isOver = false;
  try {
    let events: readonly CallEvent[] = showBefore === null ? [] : answer.read(await showBefore());
    for (;;) {
      // Events that the agent sent together are passed on together.
      const batch = eventBatch(events);
      if (batch !== null) yield batch;
      const step = await attempt.next();
      if (step.done) {
        isOver = true;
        const { result, ...end } = step.value;
        const { text, error, cut } = result;
        const last = eventBatch([...(text === null ? [] : answer.read(exactly(text))), ...answer.rest()]);
        if (last !== null) yield last;
        return { ...end, result: answer.end(end, error?.message ?? cut) };
      }
      events = step.value.events.flatMap(({ text, value }) =>
        answer.read(value === undefined ? exactly(text) : exactValue(text, value)),
      );
    }
  } finally {
    // An attempt that is stopped early still has to let go of its connection.
    if (!isOver) await attempt.return(undefined as never);
  }
}

import { LargeStrings, UpstreamFailure } from '#wire';
import { onceOnly } from '#json-rpc';
import type { ProviderAdapter, ReplyEnd, Send } from '#call';
import type { Offer } from '#catalog';
import type { Task, Tasks, TaskKey } from '#tasks';
import { bytesOfTask } from '../agent/ask-for-task.ts';
import { broken, readAgent } from '../agent/agent-reply.ts';
import { hear } from '../protocol/extensions.ts';
import { agentRequest } from '../agent/agent-request.ts';
import type { A2aRequest } from '../protocol/parse-request.ts';
import type { Cards } from '../cards/cards.ts';
import {
  type A2aResult,
  bytesBehind,
  type EventTexts,
  eventTexts,
  measureWork,
  NO_RESULT,
  refusedEnd,
} from '../protocol/ending.ts';
import { chooseLink, type Link } from '../agent/resolve.ts';
import { valueToNotify } from '../protocol/notifications.ts';
import type { OpenStreams } from '../protocol/open-streams.ts';
import { withTaskCost } from '../protocol/metadata.ts';
import { beganBy, keyOf, observationOf, versionIn } from '../protocol/agent-tasks.ts';
import { A2A_ERRORS, translateError } from '../wire/errors.ts';
import { exactValue } from '../wire/edit-json.ts';
import { isStreaming } from '../wire/protocol.ts';
import { isOfTask, readEvent, isTerminal } from '../wire/events.ts';
import { translateResult } from '../wire/translate.ts';

export interface TaskAdapterDeps {
  readonly cards: Pick<Cards, 'facts'>;
  readonly tasks: Pick<Tasks, 'saw' | 'costOf'>;
  readonly notify: (key: TaskKey, link: Link, value: unknown) => void;
  readonly streams: OpenStreams;
  readonly replyBytesMax: number;
  readonly filesBytesMax: number;
}

interface TaskRequest extends Pick<
  A2aRequest,
  'operation' | 'version' | 'params' | 'paramsText' | 'requestId' | 'extensions'
> {
  readonly wantsReceipt?: boolean;
  /** The gateway itself asks, without the history. If the task is still too large, its output is large. */
  readonly polls?: boolean;
  /** The asker can pass on a text with marks. */
  readonly takesLarge?: boolean;
}

type TalkedTask = Pick<Task, 'service' | 'taskId' | 'live' | 'notes' | 'output'>;

const FREE = { usage: null, outcome: 'free', estimated: false, finishReason: null, flags: [] } as const;
const OVER: ReplyEnd<A2aResult> = { ...FREE, result: NO_RESULT };

/**
 * Asks an agent to show or cancel a known task, or to stream its further events. When the task has ended, it is settled
 * before the client gets the end.
 */
export function createTaskAdapter(
  deps: TaskAdapterDeps,
  ask: TaskRequest,
  task: TalkedTask,
): ProviderAdapter<A2aResult, EventTexts> {
  return { startAttempt: (offer, send) => startAttempt(deps, ask, task, offer, send) };
}

async function* startAttempt(
  { cards, tasks, notify, streams: open, replyBytesMax, filesBytesMax }: TaskAdapterDeps,
  ask: TaskRequest,
  { service, taskId, live, notes, output }: TalkedTask,
  offer: Offer,
  send: Send,
): AsyncGenerator<EventTexts, ReplyEnd<A2aResult>, undefined> {
  const { operation, version } = ask;
  const begunIn = versionIn(notes);
  const link = chooseLink(offer, await cards.facts(offer), begunIn ?? version);
  const key = keyOf(service, taskId);
  const streams = isStreaming(operation);
  let gave = output;
  const measuring = measureWork(offer, '');
  let isReported = false;
  const began = beganBy({ notes, taskId });
  const large = ask.takesLarge ? { strings: new LargeStrings(), bytesMax: filesBytesMax } : undefined;
  /** The text with the cost of the task. A stream has it in its first event and in its last. */
  const priced = async (text: string, ended: boolean): Promise<string> => {
    if (ask.polls || (isReported && !ended)) return text;
    return withTaskCost(text, began, ended ? await tasks.costOf(key, beganBy) : null, ask.wantsReceipt === true);
  };
  let forget = () => {};
  try {
    const { params, paramsText, requestId, extensions } = ask;
    const exchange = send(
      agentRequest(link, { operation, version, params, paramsText, id: requestId, requestId, extensions }),
    );
    if (streams)
      forget = open.add(() => {
        if (isReported) exchange.abort(new Error('the gateway stops'));
      });
    const reply = await exchange.head;
    hear(extensions, reply);
    for await (const agentReply of readAgent(link, requestId, reply, replyBytesMax, large)) {
      if (agentReply.kind === 'error') {
        // An agent that no longer knows a task does no more work on it and is paid nothing.
        const lost =
          agentReply.error.code === A2A_ERRORS.TaskNotFound.code && (begunIn === null || begunIn === link.version);
        if (lost && live) await tasks.saw(key, { state: 'failed', end: 'free' });
        return refusedEnd(translateError(link.version, version, agentReply.error));
      }
      const event = readEvent(link.version, agentReply.value);
      if (event === null || (event.kind === 'message' && !streams) || !isOfTask(event, taskId))
        throw broken('the agent answered with another task', reply.status);
      measuring.hear(agentReply);
      const asking = { link, taskId, id: requestId, requestId, replyBytesMax, send };
      const observation = live
        ? observationOf(offer, event, gave, await bytesBehind(offer, event, measuring.bytes, () => bytesOfTask(asking)))
        : null;
      if (observation) await tasks.saw(key, observation);
      gave ||= event.output;
      if (live) notify(key, link, valueToNotify(link.version, agentReply));
      const asSaid =
        link.version === version
          ? agentReply.text
          : JSON.stringify(
              translateResult(operation, link.version, version, exactValue(agentReply.text, agentReply.value)),
            );
      const text = await priced(asSaid, !live || isTerminal(event.state));
      const result: A2aResult = { text, large: agentReply.large, event, error: null, cut: null };
      if (!streams || isTerminal(event.state)) return { ...FREE, finishReason: event.state, result };
      isReported = true;
      yield eventTexts([{ text, value: undefined }]);
    }
    return OVER;
  } catch (error) {
    if (isReported && open.ended) return OVER;
    if (ask.polls && live && !gave && error instanceof UpstreamFailure && error.tooLarge)
      await tasks.saw(key, { state: null, end: null, output: true });
    throw onceOnly(error);
  } finally {
    forget();
  }
}

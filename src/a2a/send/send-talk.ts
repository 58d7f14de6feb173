import { UpstreamFailure } from '#wire';
import type { Call, Conversation, ListenPlaces, Offer, ReplyEnd, Send } from '#gateway';
import type { TaskKey, TaskOwner, Tasks } from '#tasks';
import { broken, readAgent } from '../agent/agent-reply.ts';
import type { RunGift } from '../agent/agent-request.ts';
import { chooseLink, type Link } from '../agent/link.ts';
import type { Cards } from '../cards/card-cache.ts';
import type { Ask } from '../door/ask.ts';
import { A2aError } from '../wire/a2a-error.ts';
import type { A2aVersion } from '../wire/version.ts';
import { AgentTalk } from './agent-talk.ts';
import { claimContext } from './context-of.ts';
import { pendingEnd } from './ending.ts';
import { measureWork } from './measured-work.ts';
import type { OpenStreams } from './open-streams.ts';
import { SentMessage } from './sent-message.ts';
import { waitForTask } from './wait-for-task.ts';

export interface SendTalkDeps {
  readonly cards: Pick<Cards, 'facts'>;
  readonly tasks: Tasks;
  /** The token and budget of an agent that may make calls in the name of its consumer; null for none. */
  readonly runGift: (call: Call) => RunGift | null;
  /**
   * The address at which an agent tells of the task that a message begins; null where the gateway does not know its
   * own.
   */
  readonly ownWebhook: (offer: Offer, owner: TaskOwner, taskId: string | null) => string | null;
  /** Told of what an event of a task says, whoever else may want to know: the client's webhooks. */
  readonly notify: (key: TaskKey, link: Link, value: unknown) => void;
  readonly streams: OpenStreams;
  readonly places: ListenPlaces;
  readonly replyBytesMax: number;
  readonly taskTtlMs: number;
  /** Told of tasks whose end could not be noted; they are looked at later. */
  readonly onError: (error: unknown) => void;
}

export interface SendAsk extends Pick<
  Ask,
  'operation' | 'version' | 'params' | 'paramsText' | 'requestId' | 'extensions'
> {
  /** The task that the message goes on with; null for a new one. */
  readonly taskId: string | null;
  /** The version that this task was begun in. */
  readonly begunIn?: A2aVersion | null;
  /** That the message names; null for none. */
  readonly contextId: string | null;
  /** The message goes on with a task that has not ended. */
  readonly later: boolean;
  /** All that the task costs is charged with its first message, so that this call is a free one. */
  readonly covered: boolean;
  /**
   * The call lasts until its task ends or asks for something, also where the agent answers at once: whoever called
   * has no way to ask for the task.
   */
  readonly waits: boolean;
  /** Aborts when the client of a stream leaves. The call goes on. */
  readonly left?: AbortSignal;
  /** The client asked to be told of the task: that is for the gateway to do, and not for the agent. */
  readonly pushes: boolean;
  /** Called once, when it is noted which task the message is of, and before anybody hears of it. */
  readonly onTask?: (key: TaskKey) => Promise<void>;
}

/**
 * The native side of a message to an agent: its data frames are events, JSON text in the client's version, its tail
 * is an A2aTail.
 */
export interface SendTalk extends Conversation {
  /** Id of the task that the message began or went on with; null while the agent named none. */
  task(): string | null;
  /** When this resolves, the task that has ended is noted as such and all its calls are settled. */
  noted(): Promise<void>;
}

/**
 * Sends a message to an agent and reads what comes of it. A task is noted, and its lock kept, before the client
 * hears of it. From then on nothing that befalls the connection is an error of the call, since the task goes on:
 * its end is seen by another way.
 */
export function createSendTalk(deps: SendTalkDeps, ask: SendAsk): SendTalk {
  const message = new SentMessage(deps, ask);
  return {
    begin(prepared) {
      message.call = prepared;
    },
    converse: (offer, send, signal, detached) => converse(message, offer, send, signal, detached),
    resolved(resolution) {
      // A lock that could not be settled is settled when the task is looked at.
      if (resolution === 'settled') message.note(message.call.id);
    },
    noted: () => message.noted,
    task: () => message.taskId,
  };
}

async function* converse(
  message: SentMessage,
  offer: Offer,
  send: Send,
  signal: AbortSignal,
  detached: Send,
): AsyncGenerator<Uint8Array, ReplyEnd, undefined> {
  const { deps, ask, call } = message;
  if (ask.taskId === null) await deps.tasks.admit(call.caller.account);
  await claimContext(deps.tasks, call.caller, offer.service, ask.contextId);
  const facts = await deps.cards.facts(offer);
  const link = chooseLink(offer, facts, ask.begunIn ?? ask.version);
  const operation = operationOf(ask, offer, facts.streaming && link.binding !== 'bare');
  message.measuring = measureWork(offer, ask.paramsText);
  const talk = new AgentTalk(message, { offer, link, operation, send, detached, signal });
  try {
    const exchange = talk.ask(facts);
    try {
      const reply = await exchange.head;
      for await (const said of readAgent(link, call.id, reply, deps.replyBytesMax)) {
        const step = await talk.heard(said, reply.status);
        if (step === null) break;
        if (typeof step !== 'string') return step;
        yield Buffer.from(step);
      }
      if (talk.task === null) throw broken('the agent ended its answer before it said anything', reply.status);
    } catch (error) {
      if (!talk.waitsDespite(error)) throw error;
      if (!(error instanceof UpstreamFailure)) deps.onError(error);
    }
    return talk.waits ? yield* waitForTask(message, talk.task!, send, talk.ending) : pendingEnd({});
  } catch (error) {
    return await talk.failed(error);
  } finally {
    talk.over();
  }
}

/** Throws A2aError `UnsupportedOperation` where the client asks for a stream that the agent does not have. */
function operationOf({ operation, waits }: SendAsk, { service }: Offer, streams: boolean): 'send' | 'stream' {
  if (operation !== 'stream') return 'send';
  if (streams) return 'stream';
  if (waits) return 'send';
  throw new A2aError(
    'UnsupportedOperation',
    `${service} does not stream, as its agent card says: send the message without a stream`,
  );
}

import { type LargeStrings, UpstreamFailure } from '#wire';
import type { Call, ProviderAdapter, StreamQuota, Offer, ReplyEnd, Send } from '#gateway';
import type { TaskKey, TaskOwner, Tasks } from '#tasks';
import { broken, readAgent } from '../agent/agent-reply.ts';
import type { RunGift } from '../agent/agent-request.ts';
import { chooseLink, type Link } from '../agent/resolve.ts';
import type { Cards } from '../cards/card-cache.ts';
import type { A2aRequest } from '../http/parse-request.ts';
import { A2aError } from '../wire/errors.ts';
import type { A2aVersion } from '../wire/protocol.ts';
import { AgentStream } from './agent-stream.ts';
import { claimContext } from '../tasks/agent-tasks.ts';
import { pendingEnd, measureWork } from './ending.ts';
import type { OpenStreams } from './open-streams.ts';
import { SentMessage } from './sent-message.ts';
import { waitForTask } from './wait-for-task.ts';

export interface SendAdapterDeps {
  readonly cards: Pick<Cards, 'facts'>;
  readonly tasks: Tasks;
  /** The run token and budget for an agent that may make calls in the name of its consumer; null for none. */
  readonly runGift: (call: Call) => RunGift | null;
  /**
   * The webhook at which an agent reports on the task of a message; null if the gateway does not know its own address.
   */
  readonly ownWebhook: (offer: Offer, owner: TaskOwner, taskId: string | null) => string | null;
  /** Called with each event of a task, for the client's webhooks. */
  readonly notify: (key: TaskKey, link: Link, value: unknown) => void;
  readonly streams: OpenStreams;
  readonly places: StreamQuota;
  readonly replyBytesMax: number;
  /** Most bytes of an answer with its files. */
  readonly filesBytesMax: number;
  readonly taskTtlMs: number;
  /** Called with the error when the end of a task cannot be stored. The watch looks at such a task later. */
  readonly onError: (error: unknown) => void;
}

export interface SendRequest extends Pick<
  A2aRequest,
  'operation' | 'version' | 'params' | 'paramsText' | 'requestId' | 'extensions'
> {
  /** The task that the message continues; null for a new one. */
  readonly taskId: string | null;
  /** The A2A version in which this task began. */
  readonly begunIn?: A2aVersion | null;
  /** The context that the message names; null for none. */
  readonly contextId: string | null;
  /** The message continues a task that has not ended. */
  readonly later: boolean;
  /** The first message of the task pays for the whole task, so this call is free. */
  readonly covered: boolean;
  /**
   * The call lasts until its task ends or asks for input, even if the agent answers earlier. It is set for callers that
   * have no way to ask for the task.
   */
  readonly waits: boolean;
  /** Aborts when the client of a stream disconnects. The call goes on. */
  readonly left?: AbortSignal;
  /** The client asked for push notifications. The gateway sends them, not the agent. */
  readonly pushes: boolean;
  /** Called once, after the task of the message is stored and before the client sees it. */
  readonly onTask?: (key: TaskKey) => Promise<void>;
}

/**
 * The native side of a message to an agent. Its data frames are events, as JSON text in the client's version. Its tail
 * is an A2aTail.
 */
export interface SendAdapter extends ProviderAdapter {
  /** Id of the task that the message began or continued; null until the agent names one. */
  task(): string | null;
  /** The large strings of its frames, which have their marks. Forget those of a frame that was written. */
  readonly large: LargeStrings;
  /** Resolves when the end of the task is stored and all its calls are settled. */
  noted(): Promise<void>;
}

/**
 * Sends a message to an agent and reads the answer. The task is stored, and its lock kept, before the client sees it.
 * From then on a broken connection is not an error of the call, because the task goes on. The gateway then sees the end
 * of the task another way.
 */
export function createSendAdapter(deps: SendAdapterDeps, ask: SendRequest): SendAdapter {
  const message = new SentMessage(deps, ask);
  return {
    begin(prepared) {
      message.call = prepared;
    },
    startAttempt: (offer, send, signal, detached) => startAttempt(message, offer, send, signal, detached),
    resolved(resolution) {
      // If the settlement failed, a later look at the task settles the lock.
      if (resolution === 'settled') message.note(message.call.id);
    },
    large: message.large,
    noted: () => message.noted,
    task: () => message.taskId,
  };
}

async function* startAttempt(
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
  const operation = operationOf(ask, offer, facts.streaming);
  message.measuring = measureWork(offer, ask.paramsText);
  // The routes of other protocols read the parts of an answer, so they need all of its text.
  const large = ask.waits ? undefined : { strings: message.large, bytesMax: deps.filesBytesMax };
  const adapter = new AgentStream(message, { offer, link, operation, send, detached, signal });
  try {
    const exchange = adapter.ask(facts);
    try {
      const reply = await exchange.head;
      for await (const said of readAgent(link, call.id, reply, deps.replyBytesMax, large)) {
        const step = await adapter.heard(said, reply.status);
        if (step === null) break;
        if (typeof step !== 'string') return step;
        yield Buffer.from(step);
      }
      if (adapter.task === null) throw broken('the agent ended its answer without any content', reply.status);
    } catch (error) {
      if (!adapter.waitsDespite(error)) throw error;
      if (!(error instanceof UpstreamFailure)) deps.onError(error);
    }
    return adapter.waits ? yield* waitForTask(message, adapter.task!, send, adapter.ending) : pendingEnd({});
  } catch (error) {
    return await adapter.failed(error);
  } finally {
    adapter.over();
  }
}

/** Throws A2aError `UnsupportedOperation` if the client asks for a stream and the agent does not stream. */
function operationOf({ operation, waits }: SendRequest, { service }: Offer, streams: boolean): 'send' | 'stream' {
  if (operation !== 'stream') return 'send';
  if (streams) return 'stream';
  if (waits) return 'send';
  throw new A2aError(
    'UnsupportedOperation',
    `The agent card of ${service} says that it does not stream. Send the message without streaming`,
  );
}

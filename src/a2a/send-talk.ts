import { setTimeout as sleep } from 'node:timers/promises';
import {
  onceOnly,
  ownerOf,
  type Call,
  type Conversation,
  type ListenPlace,
  type ListenPlaces,
  type Offer,
  type ReplyEnd,
  type Send,
  type TaskKey,
  type TaskOwner,
  type Tasks,
  type UpstreamExchange,
  UpstreamFailure,
} from '#gateway';
import { broken, readAgent } from './agent-reply.ts';
import { agentRequest, type RunGift } from './agent-request.ts';
import type { Ask } from './ask.ts';
import type { Cards } from './cards/card-cache.ts';
import type { CardFacts } from './cards/read-card.ts';
import { claimContext } from './context-of.ts';
import { pendingEnd, refusedEnd, toEnd, tooLargeEnd, type A2aTail } from './ending.ts';
import { chooseLink, type Link } from './link.ts';
import type { OpenStreams } from './open-streams.ts';
import { keyOf, notesOf, sightOf } from './tasks-of-agents.ts';
import { readEvent, type A2aEvent } from './wire/read-result.ts';
import { ID_CHARS_MAX } from './wire/read-send.ts';
import { A2aError } from './wire/a2a-error.ts';
import { isInterrupted, isTerminal } from './wire/task-state.ts';
import { translateError } from './wire/translate-error.ts';
import { translateResult } from './wire/translate-result.ts';
import type { Operation } from './wire/methods.ts';
import type { A2aVersion } from './wire/version.ts';

export interface SendTalkDeps {
  readonly cards: Pick<Cards, 'facts'>;
  readonly tasks: Tasks;
  /** What an agent is given that may make calls in the name of this one's consumer; null for none. */
  readonly runGift: (call: Call) => RunGift | null;
  /** Where an agent can tell of the task that a message begins; null where the gateway does not know its own address. */
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

export interface SendAsk extends Pick<Ask, 'operation' | 'version' | 'params' | 'paramsText' | 'requestId' | 'extensions'> {
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
  /** The call lasts until its task ends or asks for something, also where the agent answers at once: whoever called has no way to ask for the task. */
  readonly waits: boolean;
  /** Aborts when the client of a stream leaves. The call goes on. */
  readonly left?: AbortSignal;
  /** The client asked to be told of the task: that is for the gateway to do, and not for the agent. */
  readonly pushes: boolean;
  /** Called once, when it is noted which task the message is of, and before anybody hears of it. */
  readonly onTask?: (key: TaskKey) => Promise<void>;
}

/** The native side of a message to an agent: its data frames are events, JSON text in the client's version, its tail is an A2aTail. */
export interface SendTalk extends Conversation {
  /** Id of the task that the message began or went on with; null while the agent named none. */
  task(): string | null;
  /** When this resolves, the task that has ended is noted as such and all its calls are settled. */
  noted(): Promise<void>;
}

const WAIT_MIN_MS = 500;
const WAIT_MAX_MS = 5_000;

/**
 * Sends a message to an agent and reads what comes of it. A task is noted, and its lock kept, before the client hears of it; from then on nothing that
 * befalls the connection is an error of the call, since the task goes on: its end is seen by another way.
 */
export function createSendTalk(deps: SendTalkDeps, ask: SendAsk): SendTalk {
  const { tasks } = deps;
  let call: Call | null = null;
  let begunTask: string | null = null;
  /** The task that has ended, with what is to be noted of it once this call is settled. */
  let ended: { readonly key: TaskKey; readonly sight: NonNullable<ReturnType<typeof sightOf>> } | null = null;
  let noting: Promise<void> = Promise.resolve();

  const note = (except: string | undefined) => {
    if (ended === null) return;
    const { key, sight } = ended;
    ended = null;
    noting = tasks.saw(key, sight, except).then(() => {}, deps.onError);
  };

  /** Notes the task of an event. Throws UpstreamFailure where it is none that this call can be about. */
  const begin = async (offer: Offer, version: A2aVersion, { taskId, contextId, state }: A2aEvent): Promise<TaskKey> => {
    if (taskId === null || taskId.length > ID_CHARS_MAX || taskId.includes('\0') || !taskId.isWellFormed())
      throw broken(`the agent's task has no id of 1 to ${ID_CHARS_MAX} characters`, null);
    if (ask.taskId !== null && taskId !== ask.taskId) throw broken('the agent answered with another task', null);
    const key = keyOf(offer.service, taskId);
    const { id, caller, candidates } = call!;
    const { price, estimate: most } = candidates.find(({ offer: { id: of } }) => of === offer.id)!;
    const begun = await tasks.begin(
      {
        ...key,
        ...ownerOf(caller),
        offerId: offer.id,
        provider: offer.provider.id,
        contextId,
        state: state ?? 'submitted',
        notes: notesOf(version),
        ttlMs: deps.taskTtlMs,
      },
      // A task that is at its end already is settled with this call.
      ask.covered || isTerminal(state) ? null : { callId: id, price: price.id, most },
    );
    if (begun === 'taken' || (ask.taskId === null && begun !== 'begun')) throw broken("the agent's task has the id of another one", null);
    // Its end was seen, or it was given up: nothing would ever settle what goes on of it.
    if (begun === 'over' && !isTerminal(state)) throw broken('the agent goes on with a task that is over', null);
    begunTask = taskId;
    return key;
  };

  /** The task has ended with this event. */
  async function over(offer: Offer, key: TaskKey, event: A2aEvent, tail: A2aTail): Promise<ReplyEnd> {
    const gave = event.output || (event.state === 'canceled' && (await tasks.find(key, ownerOf(call!.caller)))?.output === true);
    ended = { key, sight: sightOf(offer, event, gave)! };
    if (ask.covered) note(undefined);
    if (ask.covered) await noting;
    return toEnd(offer, event, tail, { later: ask.later, gave });
  }

  /** Asks for the task until it has ended, or waits for its client. */
  async function wait(offer: Offer, send: Send, link: Link, key: TaskKey, signal: AbortSignal): Promise<ReplyEnd> {
    const params = { id: key.taskId };
    for (let pauseMs = WAIT_MIN_MS; ; pauseMs = Math.min(pauseMs * 2, WAIT_MAX_MS)) {
      await sleep(pauseMs, undefined, { signal });
      const asked = {
        operation: 'get',
        version: link.version,
        params,
        paramsText: JSON.stringify(params),
        id: call!.id,
        requestId: ask.requestId,
      } as const;
      const reply = await send(agentRequest(link, { ...asked, extensions: null, run: null })).head;
      for await (const said of readAgent(link, reply, deps.replyBytesMax)) {
        if (said.kind === 'error') return pendingEnd({ cut: `The agent does not show its task: ${said.error.message}` });
        const event = readEvent(link.version, said.value);
        if (event === null || event.taskId !== key.taskId) throw broken('the agent answered with another task', reply.status);
        const value = translateResult('send', link.version, ask.version, link.version === '1.0' ? { task: said.value } : said.value);
        if (!isTerminal(event.state) && !isInterrupted(event.state)) break;
        const tail: A2aTail = { text: JSON.stringify(value), event, error: null, cut: null };
        if (isTerminal(event.state)) return await over(offer, key, event, tail);
        await tasks.saw(key, sightOf(offer, event, false)!);
        return toEnd(offer, event, tail, { later: ask.later, gave: event.output });
      }
    }
  }

  /** The task goes on, and its lock stays, also where it cannot be noted who is to be told of it. */
  async function unkeptOf(noting: Promise<void> | undefined): Promise<string | null> {
    try {
      await noting;
      return null;
    } catch (error) {
      if (!(error instanceof A2aError)) deps.onError(error);
      const why = error instanceof A2aError ? error.message : 'it cannot be stored at the moment';
      return `The task goes on, and tasks/get shows where it stands, but its push notification configuration was not kept: ${why}`;
    }
  }

  const webhookOf = (offer: Offer, { push }: CardFacts) =>
    ask.pushes ? { webhook: push ? deps.ownWebhook(offer, ownerOf(call!.caller), null) : null } : {};

  async function* converse(offer: Offer, send: Send, signal: AbortSignal): AsyncGenerator<Uint8Array, ReplyEnd, undefined> {
    await claimContext(tasks, call!.caller, offer.service, ask.contextId);
    const facts = await deps.cards.facts(offer);
    const link = chooseLink(offer, facts, ask.begunIn ?? ask.version);
    const streams = facts.streaming && link.binding !== 'bare';
    if (ask.operation === 'stream' && !streams && !ask.waits)
      throw new A2aError('UnsupportedOperation', `${offer.service} does not stream, as its agent card says: send the message without a stream`);
    const operation: Operation = ask.operation === 'stream' && streams ? 'stream' : 'send';
    let key: TaskKey | null = null;
    let state: A2aEvent['state'] = null;
    /** It is noted that the task has given output. */
    let gave = false;
    /** Why nobody else will be told of the task, who should have been. */
    let unkept: string | null = null;
    /** Whoever called hears of the task. */
    let told = false;
    let forget = () => {};
    const beganAt = performance.now();
    const listening: { place: ListenPlace | null } = { place: null };
    /** The stream of a task that goes on and that nobody reads any more only listens. Without a place for that the end of the task is seen by looking at it. */
    const unread = (exchange: UpstreamExchange) => {
      if (!told || listening.place !== null || operation !== 'stream') return;
      const place = deps.places.take(call!.caller.account);
      listening.place = place;
      const end = () => exchange.abort(new Error('nobody reads the stream'));
      if (place === null) end();
      else place.over.addEventListener('abort', end, { once: true });
    };
    try {
      const { version, params, paramsText, requestId, extensions } = ask;
      const asked = {
        operation,
        version,
        params,
        paramsText,
        id: call!.id,
        requestId,
        extensions,
        run: deps.runGift(call!),
        ...webhookOf(offer, facts),
      };
      const exchange = send(agentRequest(link, asked));
      forget = deps.streams.add(() => {
        if (told && !ask.waits) exchange.abort(new Error('the gateway stops'));
      });
      ask.left?.addEventListener('abort', () => unread(exchange), { once: true });
      const reply = await exchange.head;
      for await (const said of readAgent(link, reply, deps.replyBytesMax)) {
        if (said.kind === 'error') {
          if (key !== null) return pendingEnd({ cut: `The agent ended the stream: ${said.error.message}` });
          return refusedEnd(translateError(link.version, ask.version, said.error));
        }
        const event = readEvent(link.version, said.value);
        if (event === null) throw broken('the agent answered with neither a message nor a task', reply.status);
        const text =
          link.version === ask.version && link.binding !== 'bare'
            ? said.text
            : JSON.stringify(translateResult(operation, link.version, ask.version, said.value));
        const tail: A2aTail = { text, event, error: null, cut: null };
        if (event.kind === 'message') return toEnd(offer, event, tail, { later: ask.later, gave: true });
        const first = key === null;
        if (key === null) {
          key = await begin(offer, link.version, event);
          unkept = await unkeptOf(ask.onTask?.(key));
        } else if (event.taskId !== key.taskId) throw broken('the agent speaks of another task than before', reply.status);
        const moved = event.state !== null && event.state !== state && !first;
        if (!isTerminal(event.state) && (moved || (event.output && !gave))) {
          const sight = sightOf(offer, event, gave);
          const seen = sight && (await tasks.saw(key, sight));
          // It was ended at another door, and nothing that it gives after that would be paid.
          if (seen?.task.live === false) return pendingEnd({ cut: `The task is ${seen.task.state}` });
        }
        gave ||= event.output;
        state = event.state ?? state;
        told = true;
        if (ask.left?.aborted) unread(exchange);
        deps.notify(key, link, said.value);
        if (isTerminal(event.state)) return await over(offer, key, event, tail);
        if (unkept !== null) return pendingEnd({ cut: unkept });
        if (operation === 'send' && (!ask.waits || isInterrupted(event.state))) return toEnd(offer, event, tail, { later: ask.later, gave });
        yield Buffer.from(text);
      }
      if (key === null) throw broken('the agent ended its answer before it said anything', reply.status);
      if (ask.waits && !isInterrupted(state)) return await wait(offer, send, link, key, signal);
      return pendingEnd({});
    } catch (error) {
      if (key === null && error instanceof UpstreamFailure && error.tooLarge)
        return tooLargeEnd(offer, ask.version, { callId: call!.id, contextId: ask.contextId, later: ask.later }, error, performance.now() - beganAt);
      if (!told) throw onceOnly(error);
      return pendingEnd({
        cut: deps.streams.ended ? null : 'The connection to the agent broke off; the task goes on, and tasks/get shows where it stands',
      });
    } finally {
      forget();
      listening.place?.leave();
    }
  }

  return {
    begin(prepared) {
      call = prepared;
    },
    converse: (offer, send, signal) => converse(offer, send, signal),
    resolved(resolution) {
      // A lock that could not be settled is settled when the task is looked at.
      if (resolution === 'settled') note(call!.id);
    },
    noted: () => noting,
    task: () => begunTask,
  };
}

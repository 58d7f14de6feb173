import { setTimeout as sleep } from 'node:timers/promises';
import { UpstreamFailure } from '#wire';
import {
  onceOnly,
  type Call,
  type Conversation,
  type ListenPlace,
  type ListenPlaces,
  type Offer,
  type ReplyEnd,
  type Send,
  type UpstreamExchange,
} from '#gateway';
import { ownerOf, type TaskKey, type TaskOwner, type Tasks } from '#tasks';
import { broken, readAgent } from '../agent/agent-reply.ts';
import { agentRequest, type RunGift } from '../agent/agent-request.ts';
import type { Ask } from '../door/ask.ts';
import type { Cards } from '../cards/card-cache.ts';
import type { CardFacts } from '../cards/read-card.ts';
import { claimContext } from './context-of.ts';
import { pendingEnd, refusedEnd, toEnd, tooLargeEnd, type A2aTail } from './ending.ts';
import { askOfTask, cancelAtAgent } from '../agent/ask-of-task.ts';
import { cutTask, endedElsewhere, type TaskCut } from './cut-task.ts';
import { bytesBehind, bytesOfTask, measureWork, type Measuring } from './measured-work.ts';
import { chooseLink, type Link } from '../agent/link.ts';
import { whyEnded, type OpenStreams } from './open-streams.ts';
import { keyOf, notesOf, sightOf } from '../tasks/tasks-of-agents.ts';
import { readEvent, type A2aEvent } from '../wire/read-result.ts';
import { ID_CHARS_MAX } from '../wire/read-send.ts';
import { A2A_ERRORS, A2aError } from '../wire/a2a-error.ts';
import { isInterrupted, isTerminal } from '../wire/task-state.ts';
import { translateError } from '../wire/translate-error.ts';
import { translateResult } from '../wire/translate-result.ts';
import type { Operation } from '../wire/methods.ts';
import type { A2aVersion } from '../wire/version.ts';

export interface SendTalkDeps {
  readonly cards: Pick<Cards, 'facts'>;
  readonly tasks: Tasks;
  /** What an agent is given that may make calls in the name of this one's consumer; null for none. */
  readonly runGift: (call: Call) => RunGift | null;
  /**
   * Where an agent can tell of the task that a message begins; null where the gateway does not know its own address.
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

/** A task that goes on, by what was heard of it last. */
interface Running {
  readonly offer: Offer;
  readonly link: Link;
  readonly key: TaskKey;
  contextId: string | null;
  state: A2aEvent['state'];
  /** It is noted that the task has given output. */
  gave: boolean;
}

function heard(at: Running, { contextId, state, output }: A2aEvent): void {
  at.contextId = contextId ?? at.contextId;
  at.state = state ?? at.state;
  at.gave ||= output;
}

const isTooLarge = (error: unknown): error is UpstreamFailure => error instanceof UpstreamFailure && error.tooLarge;

/** An agent that says this shows no task, however often it is asked. */
const UNSHOWN: ReadonlySet<number> = new Set([A2A_ERRORS.MethodNotFound.code, A2A_ERRORS.UnsupportedOperation.code]);

const WAIT_MIN_MS = 500;
const WAIT_MAX_MS = 5_000;

/**
 * Sends a message to an agent and reads what comes of it. A task is noted, and its lock kept, before the client
 * hears of it; from then on nothing that befalls the connection is an error of the call, since the task goes on:
 * its end is seen by another way.
 */
export function createSendTalk(deps: SendTalkDeps, ask: SendAsk): SendTalk {
  const { tasks } = deps;
  let call: Call | null = null;
  let begunTask: string | null = null;
  /** The task that has ended, with what is to be noted of it once this call is settled, and told then. */
  let ended: {
    readonly key: TaskKey;
    readonly sight: NonNullable<ReturnType<typeof sightOf>>;
    readonly tell: () => void;
  } | null = null;
  let noting: Promise<void> = Promise.resolve();
  /** Of the attempt that runs. */
  let measuring: Measuring = measureWork({ priceCap: null }, '');

  const note = (except: string | undefined) => {
    if (ended === null) return;
    const { key, sight, tell } = ended;
    ended = null;
    noting = tasks.saw(key, sight, except).then(tell, deps.onError);
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
        notes: notesOf(version, id),
        askedAt: call!.startedAt,
        messageBytes: Buffer.byteLength(ask.paramsText),
        ttlMs: deps.taskTtlMs,
      },
      // A task that is at its end with its first message is settled with this call, which its notes name.
      ask.covered || (isTerminal(state) && ask.taskId === null) ? null : { callId: id, price: price.id, most },
    );
    if (begun === 'taken' || (ask.taskId === null && begun !== 'begun'))
      throw broken("the agent's task has the id of another one", null);
    // Its end was seen, or it was given up: nothing would ever settle what goes on of it.
    if (begun === 'over' && !isTerminal(state)) throw broken('the agent goes on with a task that is over', null);
    begunTask = taskId;
    return key;
  };

  /** The task has ended with this event. `bytes`: of what was heard of it. */
  async function over(
    { offer, key }: Pick<Running, 'offer' | 'key'>,
    event: A2aEvent,
    tail: A2aTail,
    bytes: number,
    tell: () => void = () => {},
  ): Promise<ReplyEnd> {
    const gave =
      event.output || (event.state === 'canceled' && (await tasks.find(key, ownerOf(call!.caller)))?.output === true);
    ended = { key, sight: sightOf(offer, event, gave, bytes)!, tell };
    if (ask.covered) note(undefined);
    if (ask.covered) await noting;
    return toEnd(offer, event, tail, { later: ask.later, gave, work: measuring.work(bytes) });
  }

  /**
   * The task of a client that has no other way to it, once nothing more is heard of it: it is asked for until it
   * has ended, or waits for its client.
   */
  async function* wait(at: Running, send: Send, ending: AbortSignal): AsyncGenerator<Uint8Array, ReplyEnd, undefined> {
    const { offer, link, key } = at;
    for (let pauseMs = WAIT_MIN_MS; ; pauseMs = Math.min(pauseMs * 2, WAIT_MAX_MS)) {
      await sleep(pauseMs, undefined, { signal: ending });
      let text: string;
      try {
        const shown = await askOfTask({ ...asking(at), send }, 'get');
        if (shown.kind === 'error') {
          if (shown.error.code === A2A_ERRORS.TaskNotFound.code) return await lost(key, shown.error);
          if (UNSHOWN.has(shown.error.code)) throw new A2aError('UnsupportedOperation', shown.error.message);
          continue;
        }
        const { event } = shown;
        text = textOf(link, shown.value);
        if (isTerminal(event.state))
          return await over(
            at,
            event,
            { text, event, error: null, cut: null },
            Math.max(measuring.bytes, Buffer.byteLength(text)),
          );
        if (event.state !== at.state || (event.output && !at.gave)) {
          const sight = sightOf(offer, event, at.gave, measuring.bytes);
          const seen = sight && (await tasks.saw(key, sight));
          if (seen?.task.live === false) return await endedElsewhere(deps, call!, key);
        }
        heard(at, event);
        if (isInterrupted(event.state))
          return toEnd(offer, event, { text, event, error: null, cut: null }, sofar(at.gave));
        if (!event.output) continue;
      } catch (error) {
        if (ending.aborted || isTooLarge(error)) throw error;
        if (error instanceof A2aError)
          throw new Error(`the agent does not show its task: ${error.message}`, { cause: error });
        if (!(error instanceof UpstreamFailure)) deps.onError(error);
        continue;
      }
      yield Buffer.from(text);
    }
  }

  const sofar = (gave: boolean) => ({ later: ask.later, gave, work: measuring.work() });

  const asking = ({ link, key }: Running) => ({
    link,
    taskId: key.taskId,
    id: call!.id,
    requestId: ask.requestId,
    replyBytesMax: deps.replyBytesMax,
  });

  /** A task that was asked for, as a client of a send is shown it. */
  const textOf = (link: Link, value: unknown) =>
    JSON.stringify(
      translateResult('send', link.version, ask.version, link.version === '1.0' ? { task: value } : value),
    );

  /** An agent that has lost a task does nothing for it any more, and is owed nothing. */
  async function lost(key: TaskKey, error: NonNullable<A2aTail['error']>): Promise<ReplyEnd> {
    const seen = await tasks.saw(key, { state: 'failed', end: 'free' }, ask.covered ? undefined : call!.id);
    return seen?.task.state === 'failed' ? refusedEnd(error) : endedElsewhere(deps, call!, key);
  }

  /** The gateway ends the task: nobody hears more of it. */
  async function cut(at: Running, detached: Send, why: TaskCut): Promise<ReplyEnd> {
    const { link } = at;
    const ended = await cancelAtAgent({ ...asking(at), send: detached });
    const bytes = Math.max(measuring.bytes, ended === null ? 0 : Buffer.byteLength(JSON.stringify(ended.value)));
    if (ended !== null && ended.event.state !== 'canceled' && why.reason !== 'too_large')
      return over(
        at,
        ended.event,
        { text: textOf(link, ended.value), event: ended.event, error: null, cut: null },
        bytes,
      );
    const { version, later, covered } = ask;
    return cutTask(
      deps,
      { ...at, call: call!, version, later, covered, work: measuring.work(bytes), canceled: ended?.event ?? null },
      why,
    );
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

  async function* converse(
    offer: Offer,
    send: Send,
    signal: AbortSignal,
    detached: Send,
  ): AsyncGenerator<Uint8Array, ReplyEnd, undefined> {
    if (ask.taskId === null) await tasks.admit(call!.caller.account);
    await claimContext(tasks, call!.caller, offer.service, ask.contextId);
    const facts = await deps.cards.facts(offer);
    const link = chooseLink(offer, facts, ask.begunIn ?? ask.version);
    const streams = facts.streaming && link.binding !== 'bare';
    if (ask.operation === 'stream' && !streams && !ask.waits)
      throw new A2aError(
        'UnsupportedOperation',
        `${offer.service} does not stream, as its agent card says: send the message without a stream`,
      );
    const operation: Operation = ask.operation === 'stream' && streams ? 'stream' : 'send';
    let at: Running | null = null;
    /** Why nobody else will be told of the task, who should have been. */
    let unkept: string | null = null;
    /** Whoever called hears of the task. */
    let told = false;
    let forget = () => {};
    measuring = measureWork(offer, ask.paramsText);
    const stopping = new AbortController();
    const ending = AbortSignal.any([signal, stopping.signal]);
    const listening: { place: ListenPlace | null } = { place: null };
    /**
     * The stream of a task that goes on and that nobody reads any more only listens. Without a place for that the
     * end of the task is seen by looking at it.
     */
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
        if (!told) return;
        stopping.abort(new Error('the gateway stops'));
        exchange.abort(stopping.signal.reason as Error);
      });
      ask.left?.addEventListener('abort', () => unread(exchange), { once: true });
      try {
        const reply = await exchange.head;
        for await (const said of readAgent(link, asked.id, reply, deps.replyBytesMax)) {
          if (said.kind === 'error') {
            if (at === null) return refusedEnd(translateError(link.version, ask.version, said.error));
            if (ask.waits) break;
            return pendingEnd({ cut: `The agent ended the stream: ${said.error.message}` });
          }
          measuring.hear(said.text);
          const event = readEvent(link.version, said.value);
          if (event === null) throw broken('the agent answered with neither a message nor a task', reply.status);
          const text =
            link.version === ask.version && link.binding !== 'bare'
              ? said.text
              : JSON.stringify(translateResult(operation, link.version, ask.version, said.value));
          const tail: A2aTail = { text, event, error: null, cut: null };
          if (event.kind === 'message') return toEnd(offer, event, tail, sofar(true));
          const first: boolean = at === null;
          if (at === null) {
            const key = await begin(offer, link.version, event);
            at = { offer, link, key, contextId: ask.contextId, state: null, gave: false };
            unkept = await unkeptOf(ask.onTask?.(key));
          } else if (event.taskId !== at.key.taskId)
            throw broken('the agent speaks of another task than before', reply.status);
          const moved = event.state !== null && event.state !== at.state && !first;
          if (!isTerminal(event.state) && (moved || (event.output && !at.gave))) {
            const sight = sightOf(offer, event, at.gave, measuring.bytes);
            const seen = sight && (await tasks.saw(at.key, sight));
            // It was ended at another door, and nothing that it gives after that would be paid. What is completed,
            // its client is to have.
            if (seen?.task.live === false && !(ask.waits && seen.task.state === 'completed'))
              return ask.waits
                ? await endedElsewhere(deps, call!, at.key)
                : pendingEnd({ cut: `The task is ${seen.task.state}` });
          }
          heard(at, event);
          told = true;
          if (ask.left?.aborted) unread(exchange);
          const current: Running = at;
          const tell = () => deps.notify(current.key, link, said.value);
          if (isTerminal(event.state)) {
            const bytes = await bytesBehind(offer, event, measuring.bytes, () =>
              bytesOfTask({ ...asking(current), send }),
            );
            return await over(current, event, tail, bytes, tell);
          }
          tell();
          if (unkept !== null) return pendingEnd({ cut: unkept });
          if (operation === 'send' && (!ask.waits || isInterrupted(event.state)))
            return toEnd(offer, event, tail, sofar(at.gave));
          yield Buffer.from(text);
        }
        if (at === null) throw broken('the agent ended its answer before it said anything', reply.status);
      } catch (error) {
        // Who has no way to the task is not left with half of an answer.
        if (!told || !ask.waits || ending.aborted || isTooLarge(error)) throw error;
        if (!(error instanceof UpstreamFailure)) deps.onError(error);
      }
      if (ask.waits && !isInterrupted(at!.state)) return yield* wait(at!, send, ending);
      return pendingEnd({});
    } catch (error) {
      if (at === null && isTooLarge(error))
        return tooLargeEnd(
          offer,
          ask.version,
          { callId: call!.id, contextId: ask.contextId, later: ask.later },
          error,
          measuring.work().elapsedMs,
        );
      if (!told) throw onceOnly(error);
      if (isTooLarge(error)) return await cut(at!, detached, { reason: 'too_large', failure: error });
      if (ask.waits && !isInterrupted(at!.state)) {
        const reason = signal.aborted ? 'timeout' : stopping.signal.aborted ? 'shutdown' : 'gave_up';
        return await cut(at!, detached, {
          reason,
          failure: ending.aborted ? (ending.reason as Error) : (error as Error),
        });
      }
      return pendingEnd({ cut: deps.streams.ended ? null : whyEnded(error, signal) });
    } finally {
      forget();
      listening.place?.leave();
    }
  }

  return {
    begin(prepared) {
      call = prepared;
    },
    converse: (offer, send, signal, detached) => converse(offer, send, signal, detached),
    resolved(resolution) {
      // A lock that could not be settled is settled when the task is looked at.
      if (resolution === 'settled') note(call!.id);
    },
    noted: () => noting,
    task: () => begunTask,
  };
}

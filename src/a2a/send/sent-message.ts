import type { CutReply } from '#billing/amounts';
import { LargeStrings, UpstreamFailure } from '#wire';
import { type Call, cutReply, type ReplyEnd, type Send, measuredUse, ONE_CALL, type ReportedUsage } from '#call';
import type { Offer } from '#catalog';
import type { StreamQuota } from '#limits';
import { ownerOf, type TaskKey, type TaskOwner, type Tasks } from '#tasks';
import { broken } from '../agent/agent-reply.ts';
import type { RunGift } from '../agent/agent-request.ts';
import type { Cards } from '../cards/cards.ts';
import type { A2aRequest } from '../protocol/parse-request.ts';
import type { OpenStreams } from '../protocol/open-streams.ts';
import { type AskOfTask, cancelAtAgent } from '../agent/ask-for-task.ts';
import type { Link } from '../agent/resolve.ts';
import { canceledStatus, keyOf, notesOf, observationOf } from '../protocol/agent-tasks.ts';
import { A2aError } from '../wire/errors.ts';
import { type A2aEvent, isTerminal, readEvent } from '../wire/events.ts';
import { ID_CHARS_MAX } from '../wire/read-send.ts';
import { translateResult, translateEvent } from '../wire/translate.ts';
import type { A2aVersion } from '../wire/protocol.ts';
import {
  type A2aResult,
  type EventResult,
  FREE,
  isOwed,
  measureWork,
  type Measuring,
  NO_RESULT,
  refusedEnd,
  toEnd,
  usageOf,
} from '../protocol/ending.ts';

export interface SendAdapterDeps {
  readonly cards: Pick<Cards, 'facts'>;
  readonly tasks: Tasks;
  /** The run token and budget for an agent that may make calls in the name of its consumer; null for none. */
  readonly runGift: (call: Call) => RunGift | null;
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
  readonly clientGone?: AbortSignal;
  /** The client asked for push notifications. The gateway sends them, not the agent. */
  readonly pushes: boolean;
  /** Called once, after the task of the message is stored and before the client sees it. */
  readonly onTask?: (key: TaskKey) => Promise<void>;
}

/** A running task, as of its last event. */
export interface RunningTask {
  readonly offer: Offer;
  readonly link: Link;
  readonly key: TaskKey;
  contextId: string | null;
  state: A2aEvent['state'];
  /** The task has given output, and this is stored. */
  gave: boolean;
}

export function update(task: RunningTask, { contextId, state, output }: A2aEvent): void {
  task.contextId = contextId ?? task.contextId;
  task.state = state ?? task.state;
  task.gave ||= output;
}

/** The reason why the gateway ends a task that its agent has not ended. */
interface TaskCut {
  readonly reason: Exclude<CutReply['reason'], 'cancelled'>;
  readonly failure: Error;
}

/** A task that has ended. `observation` is stored after the call is settled; then `tell` is called. */
interface EndedTask {
  readonly key: TaskKey;
  readonly observation: NonNullable<ReturnType<typeof observationOf>>;
  readonly tell: () => void;
}

/** One message with its call. It stores the task that the message begins or continues, and the end of that task. */
export class SentMessage {
  readonly deps: SendAdapterDeps;
  readonly ask: SendRequest;
  measuring: Measuring = measureWork({ priceCap: null }, '');
  readonly large = new LargeStrings();
  taskId: string | null = null;
  noted: Promise<void> = Promise.resolve();
  #call: Call | null = null;
  #ended: EndedTask | null = null;

  constructor(deps: SendAdapterDeps, ask: SendRequest) {
    this.deps = deps;
    this.ask = ask;
  }

  get call(): Call {
    if (this.#call === null) throw new Error('a message is sent after its call was prepared');
    return this.#call;
  }

  set call(prepared: Call) {
    this.#call = prepared;
  }

  /** Stores the end of the task, if it has ended. `except`: the call that is already settled. */
  note(except: string | undefined): void {
    if (this.#ended === null) return;
    const { key, observation, tell } = this.#ended;
    this.#ended = null;
    this.noted = this.deps.tasks.saw(key, observation, except).then(tell, this.deps.onError);
  }

  /** Stores the task of a first event. Throws UpstreamFailure if this call cannot own that task. */
  async begin(offer: Offer, version: A2aVersion, { taskId, contextId, state }: A2aEvent): Promise<TaskKey> {
    const { ask, deps } = this;
    if (taskId === null || taskId.length > ID_CHARS_MAX || taskId.includes('\0') || !taskId.isWellFormed())
      throw broken(`the agent's task has no id of 1 to ${ID_CHARS_MAX} characters`, null);
    if (ask.taskId !== null && taskId !== ask.taskId) throw broken('the agent answered with another task', null);
    const key = keyOf(offer.service, taskId);
    const { id, caller, candidates, startedAt } = this.call;
    const { price, estimate: most } = candidates.find(({ offer: { id: offerId } }) => offerId === offer.id)!;
    const begun = await deps.tasks.begin(
      {
        ...key,
        ...ownerOf(caller),
        offerId: offer.id,
        provider: offer.provider.id,
        contextId,
        state: state ?? 'submitted',
        notes: notesOf(version, id),
        askedAt: startedAt,
        messageBytes: Buffer.byteLength(ask.paramsText),
        ttlMs: deps.taskTtlMs,
      },
      // A task that ends with its first message needs no lock: it is settled with this call, which its notes name.
      ask.covered || (isTerminal(state) && ask.taskId === null) ? null : { callId: id, price: price.id, most },
    );
    if (begun === 'taken' || (ask.taskId === null && begun !== 'begun'))
      throw broken("the agent's task has the id of another task", null);
    // The task's end was seen, or the gateway gave it up. No later work on it would ever be settled.
    if (begun === 'over' && !isTerminal(state)) throw broken('the agent continued a task that had ended', null);
    this.taskId = taskId;
    return key;
  }

  /** The end of a call whose task ended with this event. `bytes`: the output of the task so far. */
  async over(
    { offer, key }: Pick<RunningTask, 'offer' | 'key'>,
    result: EventResult,
    bytes: number,
    tell: () => void = () => {},
  ): Promise<ReplyEnd<A2aResult>> {
    const { ask, deps } = this;
    const { event } = result;
    const gave =
      isOwed(offer, event) ||
      (event.state === 'canceled' && (await deps.tasks.find(key, ownerOf(this.call.caller)))?.output === true);
    this.#ended = { key, observation: observationOf(offer, event, gave, bytes)!, tell };
    if (ask.covered) this.note(undefined);
    if (ask.covered) await this.noted;
    return toEnd(offer, result, { later: ask.later, gave, work: this.measuring.work(bytes) });
  }

  sofar(gave: boolean): Parameters<typeof toEnd>[2] {
    return { later: this.ask.later, gave, work: this.measuring.work() };
  }

  asking({ link, key }: RunningTask, send: Send): AskOfTask {
    const { id } = this.call;
    const { requestId } = this.ask;
    return { link, taskId: key.taskId, id, requestId, replyBytesMax: this.deps.replyBytesMax, send };
  }

  textOf({ version }: Link, value: unknown): string {
    const result = version === '1.0' ? { task: value } : value;
    return JSON.stringify(translateResult('send', version, this.ask.version, result));
  }

  /** The end of a call whose agent no longer knows the task. Such an agent is paid nothing. */
  async lost(key: TaskKey, error: NonNullable<A2aResult['error']>): Promise<ReplyEnd<A2aResult>> {
    const { deps, ask, call } = this;
    const seen = await deps.tasks.saw(key, { state: 'failed', end: 'free' }, ask.covered ? undefined : call.id);
    return seen?.task.state === 'failed' ? refusedEnd(error) : this.endedElsewhere(key);
  }

  /**
   * Cancels a task that the gateway no longer waits for, and notifies the webhooks of its client. Its output until then
   * is charged, later output is not. If another request has already seen the end of the task, that end counts.
   */
  // oxlint-disable-next-line complexity -- the branches are the states in which a message is cut
  async cut(task: RunningTask, detached: Send, { reason, failure }: TaskCut): Promise<ReplyEnd<A2aResult>> {
    const { offer, link, key, contextId } = task;
    const { deps, call } = this;
    const { version, later, covered } = this.ask;
    const ended = await cancelAtAgent(this.asking(task, detached));
    const { bytes: receivedBytes } = this.measuring;
    const bytes = Math.max(receivedBytes, ended === null ? 0 : Buffer.byteLength(JSON.stringify(ended.value)));
    if (ended !== null && ended.event.state !== 'canceled' && reason !== 'too_large') {
      const { event, value } = ended;
      return this.over(task, { text: this.textOf(link, value), event, error: null, cut: null }, bytes);
    }
    const work = this.measuring.work(bytes);
    const large = failure instanceof UpstreamFailure && failure.tooLarge ? failure : null;
    const before = await deps.tasks.find(key, ownerOf(call.caller)).catch(() => null);
    // Nobody has left a task that ends with the gateway, so only its output is paid.
    const owed = ended !== null && (reason === 'shutdown' ? ended.event.output : isOwed(offer, ended.event));
    const gave = task.gave || large !== null || owed || before?.output === true;
    const why = wordsOf(failure.message, { large: large !== null, gave });
    const context = contextId === null ? {} : { contextId };
    const status = canceledStatus({ taskId: key.taskId, contextId }, why);
    const metadata = gave ? { metadata: { 'tollgate/cut': why } } : {};
    const event = { statusUpdate: { taskId: key.taskId, contextId: contextId ?? '', status, ...metadata } };
    // Only paid output is shown later, and output that is too large cannot be shown.
    const snapshot = gave && large === null ? null : JSON.stringify({ id: key.taskId, ...context, status });

    const reported = ended?.event.usage;
    const unreported = reported === undefined || reported === null;
    const used: ReportedUsage =
      unreported && large !== null && !later
        ? { usage: measuredUse(large, work.elapsedMs), flags: [] }
        : usageOf(offer, unreported ? undefined : reported, true, {
            ...work,
            bytesOut: work.bytesOut + (large?.received ?? 0),
          });
    const observation = {
      state: 'canceled',
      end: 'cut',
      output: gave,
      snapshot,
      usageOf: (_call: unknown, first: boolean) => (first ? used : ONE_CALL),
    } as const;
    const seen = await deps.tasks.saw(key, observation, covered ? undefined : call.id).catch(deps.onError);
    if (seen && seen.task.state !== 'canceled') return this.endedElsewhere(key);
    deps.notify(key, link, translateEvent('1.0', link.version, event));
    const result: A2aResult = {
      ...NO_RESULT,
      text: JSON.stringify(translateEvent('1.0', version, event)),
      event: readEvent('1.0', event),
    };
    if (!gave) return { ...FREE, finishReason: reason, result };
    const estimated = large !== null && unreported && offer.priceCap !== null && !later;
    // Its client gets an answer that says so, whatever came.
    const mark = cutReply({ reason, message: failure.message }, 'partly');
    return { ...(later ? ONE_CALL : used), outcome: 'cut', estimated, finishReason: reason, cut: mark, result };
  }

  /** The end of a call whose task ended through another request. The call is settled before this resolves. */
  async endedElsewhere(key: TaskKey): Promise<ReplyEnd<A2aResult>> {
    const seen = await this.deps.tasks.saw(key, { state: null, end: 'cut' });
    const state = seen?.task.state ?? 'canceled';
    const charged =
      seen?.settled.some(({ callId, settlement }) => callId === this.call.id && settlement.charged > 0n) === true;
    const why = `The task is ${state}: ${charged ? 'its output until then is charged' : 'nothing is charged'}`;
    const result: A2aResult = { ...NO_RESULT, cut: why };
    return charged
      ? { ...FREE, ...ONE_CALL, outcome: 'cut', finishReason: state, result }
      : { ...FREE, finishReason: state, result };
  }

  /**
   * The reason why the push notification configuration could not be stored; null if it was stored. In both cases the
   * task goes on and keeps its lock.
   */
  async unkeptOf(noting: Promise<void> | undefined): Promise<string | null> {
    try {
      await noting;
      return null;
    } catch (error) {
      if (!(error instanceof A2aError)) this.deps.onError(error);
      const why = error instanceof A2aError ? error.message : 'it cannot be stored at the moment';
      return `The task continues, and tasks/get shows its state, but its push notification configuration was not stored: ${why}`;
    }
  }
}

function wordsOf(why: string, { large, gave }: { readonly large: boolean; readonly gave: boolean }): string {
  if (large) return `The agent's answer is charged but cannot be delivered, because ${why}. Ask for a smaller answer`;
  if (gave) return `The task was canceled because ${why}. The output until then is charged`;
  return `The task was canceled because ${why}. The agent had no output until then. Nothing is charged`;
}

import { eitherOf } from '#billing/amounts';
import { GatewayError } from '#errors';
import { onceOnly } from '#json-rpc';
import type { StreamSlot } from '#limits';
import type { Offer } from '#catalog';
import type { ReplyEnd, Send, UpstreamExchange } from '#call';
import { ownerOf } from '#tasks';
import { type AgentSaid, broken } from '../agent/agent-reply.ts';
import { bytesOfTask } from '../agent/ask-for-task.ts';
import { agentRequest } from '../agent/agent-request.ts';
import type { Link } from '../agent/resolve.ts';
import type { CardFacts } from '../cards/read-card.ts';
import { valueToNotify } from '../protocol/notifications.ts';
import { claimAnswered, observationOf } from '../protocol/agent-tasks.ts';
import { exactValue } from '../wire/edit-json.ts';
import { type A2aEvent, isOfTask, readEvent, isInterrupted, isTerminal } from '../wire/events.ts';
import { translateError } from '../wire/errors.ts';
import { translateResult } from '../wire/translate.ts';
import { type RunningTask, type SentMessage, update } from './sent-message.ts';
import {
  type A2aResult,
  type EventResult,
  isTooLarge,
  pendingEnd,
  refusedEnd,
  toEnd,
  tooLargeEnd,
  bytesBehind,
} from '../protocol/ending.ts';
import { whyEnded } from '../protocol/open-streams.ts';

interface AgentStreamOptions {
  readonly offer: Offer;
  readonly link: Link;
  readonly operation: 'send' | 'stream';
  readonly send: Send;
  readonly detached: Send;
  readonly signal: AbortSignal;
}

/** One message to one agent: the request, the events of the agent, and the end of the call if the connection breaks. */
export class AgentStream {
  /** The task that the agent named; null before. */
  task: RunningTask | null = null;
  readonly #message: SentMessage;
  readonly #options: AgentStreamOptions;
  readonly #stopping = new AbortController();
  /** Created on first use, because most messages are answered at once and need no signal. */
  #ending: AbortSignal | null = null;
  /** An event of the task was returned for the client. */
  #isReported = false;
  /** The reason why the push notification configuration was not stored; null if it was stored. */
  #unkept: string | null = null;
  #place: StreamSlot | null = null;
  #forget: () => void = () => {};

  constructor(message: SentMessage, options: AgentStreamOptions) {
    this.#message = message;
    this.#options = options;
  }

  /** Aborts when the call ends or the gateway stops. */
  get ending(): AbortSignal {
    return (this.#ending ??= eitherOf(this.#options.signal, this.#stopping.signal));
  }

  /** The call goes on until its task ends or asks for input. */
  get waits(): boolean {
    return this.#message.ask.waits && !isInterrupted(this.task!.state);
  }

  ask({ push }: CardFacts): UpstreamExchange {
    const { ask, call, deps } = this.#message;
    const { offer, link, operation, send } = this.#options;
    const { version, params, paramsText, requestId, extensions, clientGone } = ask;
    const exchange = send(
      agentRequest(link, {
        operation,
        version,
        params,
        paramsText,
        id: call.id,
        requestId,
        extensions,
        run: deps.runGift(call),
        ...(ask.pushes ? { webhook: push ? deps.ownWebhook(offer, ownerOf(call.caller), null) : null } : {}),
      }),
    );
    this.#forget = deps.streams.add(() => {
      if (!this.#isReported) return;
      this.#stopping.abort(new Error('the gateway stops'));
      exchange.abort(this.#stopping.signal.reason as Error);
    });
    // Two steps, because V8 puts a function that is assigned directly to a property into the old heap (decision 91).
    const unread = () => this.#onlyListen(exchange);
    this.#unread = unread;
    clientGone?.addEventListener('abort', unread, { once: true });
    return exchange;
  }

  #unread: () => void = () => {};

  /**
   * Keeps a stream open after its client has left, only to see the end of the task. If no place for listening is free,
   * the stream is closed, and looks at the task find its end.
   */
  #onlyListen(exchange: UpstreamExchange): void {
    if (!this.#isReported || this.#place !== null || this.#options.operation !== 'stream') return;
    const { deps, call } = this.#message;
    this.#place = deps.places.take(ownerOf(call.caller));
    const end = () => exchange.abort(new Error('nobody reads the stream'));
    if (this.#place === null) end();
    else this.#place.over.addEventListener('abort', end, { once: true });
  }

  /**
   * Handles an event of the agent. Returns the text for the client, the end of the call, or null if no more is read.
   * Throws UpstreamFailure.
   */
  async receive(reply: AgentSaid, status: number): Promise<string | ReplyEnd<A2aResult> | null> {
    const { ask, deps, measuring } = this.#message;
    const { offer, link, operation } = this.#options;
    if (reply.kind === 'error') {
      if (this.task === null) return refusedEnd(translateError(link.version, ask.version, reply.error));
      return ask.waits ? null : pendingEnd(`The agent ended the stream: ${reply.error.message}`);
    }
    measuring.hear(reply);
    const event = readEvent(link.version, reply.value);
    if (event === null) throw broken('the agent answered with neither a message nor a task', status);
    const text =
      link.version === ask.version && link.binding !== 'bare'
        ? reply.text
        : JSON.stringify(translateResult(operation, link.version, ask.version, exactValue(reply.text, reply.value)));
    const result = { text, large: reply.large, event, error: null, cut: null };
    // The agent has begun its work, so a database that is away does not take its answer.
    if (this.task === null && event.contextId !== ask.contextId)
      await claimAnswered(deps.tasks, this.#message.call.caller, offer.service, event.contextId).catch(deps.onError);
    // A message is the answer only if no task has begun. In the stream of a task, the end of the task is the answer.
    if (event.kind === 'message' && this.task === null) return toEnd(offer, result, this.#message.sofar(true));
    const first = this.task === null;
    const task = (this.task ??= await this.#begin(event));
    if (!isOfTask(event, task.key.taskId)) throw broken('the agent sent an event of another task', status);
    if (changes(task, event, first)) {
      const ended = await this.#saw(task, event);
      if (ended !== null) return ended;
    }
    update(task, event);
    this.#isReported = true;
    if (ask.clientGone?.aborted) this.#unread();
    const tell = () => deps.notify(task.key, link, valueToNotify(link.version, reply));
    if (isTerminal(event.state)) return this.#over(task, result, tell);
    tell();
    if (this.#unkept !== null) return pendingEnd(this.#unkept);
    if (operation === 'send' && (!ask.waits || isInterrupted(event.state)))
      return toEnd(offer, result, this.#message.sofar(task.gave));
    return text;
  }

  async #begin(event: A2aEvent): Promise<RunningTask> {
    const { ask } = this.#message;
    const { offer, link } = this.#options;
    const key = await this.#message.begin(offer, link.version, event);
    // From here on the task is known, even if its first event cannot be passed on.
    this.task = { offer, link, key, contextId: ask.contextId, state: null, gave: false };
    this.#unkept = await this.#message.unkeptOf(ask.onTask?.(key));
    return this.task;
  }

  /** Stores what an event changes of the task. Returns the end of the call if the task was already over. */
  async #saw(task: RunningTask, event: A2aEvent): Promise<ReplyEnd<A2aResult> | null> {
    const { ask, deps, measuring } = this.#message;
    const observation = observationOf(task.offer, event, task.gave, measuring.bytes);
    const seen = observation && (await deps.tasks.saw(task.key, observation));
    // The task was ended through another route, so later output would not be paid. But the client of a completed task
    // still gets the complete result.
    if (seen?.task.live !== false || (ask.waits && seen.task.state === 'completed')) return null;
    return ask.waits ? this.#message.endedElsewhere(task.key) : pendingEnd(`The task is ${seen.task.state}`);
  }

  async #over(task: RunningTask, result: EventResult, tell: () => void): Promise<ReplyEnd<A2aResult>> {
    const { measuring } = this.#message;
    const bytes = await bytesBehind(task.offer, result.event, measuring.bytes, () =>
      bytesOfTask(this.#message.asking(task, this.#options.send)),
    );
    return this.#message.over(task, result, bytes, tell);
  }

  /**
   * Whether to wait for the task in spite of the error. A client that cannot ask for the task would otherwise keep half
   * of an answer.
   */
  waitsDespite(error: unknown): boolean {
    return this.#isReported && this.#message.ask.waits && !this.ending.aborted && !isTooLarge(error);
  }

  /** The end of a failed call. Throws if no task is known. */
  async failed(error: unknown): Promise<ReplyEnd<A2aResult>> {
    const { ask, deps, call, measuring } = this.#message;
    const { offer, signal, detached } = this.#options;
    const { task } = this;
    if (task === null && isTooLarge(error)) {
      const answered = { callId: call.id, contextId: ask.contextId, later: ask.later };
      return tooLargeEnd(offer, ask.version, answered, error, measuring.work().elapsedMs);
    }
    if (!this.#isReported) throw onceOnly(error);
    const reason: unknown = signal.aborted ? signal.reason : null;
    // The operator has ended the call, and its task with it.
    if (reason instanceof GatewayError && reason.code === 'call_ended') throw reason;
    if (isTooLarge(error)) return this.#message.cut(task!, detached, { reason: 'too_large', failure: error });
    if (this.waits) {
      const reason = signal.aborted ? 'timeout' : this.#stopping.signal.aborted ? 'shutdown' : 'gave_up';
      const failure = (this.ending.aborted ? this.ending.reason : error) as Error;
      return this.#message.cut(task!, detached, { reason, failure });
    }
    return pendingEnd(deps.streams.ended ? null : whyEnded(error, signal));
  }

  over(): void {
    this.#forget();
    // A client that leaves from here on must not take a place that nobody gives back.
    this.#message.ask.clientGone?.removeEventListener('abort', this.#unread);
    this.#place?.leave();
  }
}

/** Whether an event changes what is stored of its task, apart from its end. The first event is stored with the task. */
function changes(task: RunningTask, { state, output }: A2aEvent, first: boolean): boolean {
  const moved = state !== null && state !== task.state && !first;
  return !isTerminal(state) && (moved || (output && !task.gave));
}

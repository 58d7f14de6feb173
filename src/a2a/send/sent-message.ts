import { LargeStrings } from '#wire';
import type { Call, Offer, ReplyEnd, Send } from '#gateway';
import { ownerOf, type TaskKey } from '#tasks';
import { broken } from '../agent/agent-reply.ts';
import { type AskOfTask, cancelAtAgent } from '../agent/ask-for-task.ts';
import type { Link } from '../agent/resolve.ts';
import { keyOf, notesOf, observationOf } from '../tasks/agent-tasks.ts';
import { A2aError } from '../wire/errors.ts';
import { type A2aEvent, isTerminal } from '../wire/events.ts';
import { ID_CHARS_MAX } from '../wire/read-send.ts';
import { translateResult } from '../wire/translate.ts';
import type { A2aVersion } from '../wire/protocol.ts';
import { cutTask, endedElsewhere, type TaskCut } from './cut-task.ts';
import { refusedEnd, toEnd, type A2aTail, measureWork, type Measuring } from './ending.ts';
import type { SendRequest, SendAdapterDeps } from './send-adapter.ts';

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
  /** Measures the current attempt. */
  measuring: Measuring = measureWork({ priceCap: null }, '');
  /** The large strings of the agent's answer. */
  readonly large = new LargeStrings();
  /** Id of the task; null until the agent names one. */
  taskId: string | null = null;
  /** Resolves when the end of the task is stored. */
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
    const { price, estimate: most } = candidates.find(({ offer: { id: of } }) => of === offer.id)!;
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
    tail: A2aTail & { readonly event: A2aEvent },
    bytes: number,
    tell: () => void = () => {},
  ): Promise<ReplyEnd> {
    const { ask, deps } = this;
    const { event } = tail;
    const gave =
      event.output ||
      (event.state === 'canceled' && (await deps.tasks.find(key, ownerOf(this.call.caller)))?.output === true);
    this.#ended = { key, observation: observationOf(offer, event, gave, bytes)!, tell };
    if (ask.covered) this.note(undefined);
    if (ask.covered) await this.noted;
    return toEnd(offer, event, tail, { later: ask.later, gave, work: this.measuring.work(bytes) });
  }

  /** The work so far, in the form that `toEnd` takes. */
  sofar(gave: boolean): Parameters<typeof toEnd>[3] {
    return { later: this.ask.later, gave, work: this.measuring.work() };
  }

  /** A request for the task, in the form that `askOfTask` takes. */
  asking({ link, key }: RunningTask, send: Send): AskOfTask {
    const { id } = this.call;
    const { requestId } = this.ask;
    return { link, taskId: key.taskId, id, requestId, replyBytesMax: this.deps.replyBytesMax, send };
  }

  /** A task as JSON text, in the form of a result of send in the client's version. */
  textOf({ version }: Link, value: unknown): string {
    const result = version === '1.0' ? { task: value } : value;
    return JSON.stringify(translateResult('send', version, this.ask.version, result));
  }

  /** The end of a call whose agent no longer knows the task. Such an agent is paid nothing. */
  async lost(key: TaskKey, error: NonNullable<A2aTail['error']>): Promise<ReplyEnd> {
    const { deps, ask, call } = this;
    const seen = await deps.tasks.saw(key, { state: 'failed', end: 'free' }, ask.covered ? undefined : call.id);
    return seen?.task.state === 'failed' ? refusedEnd(error) : endedElsewhere(deps, call, key);
  }

  /** Cancels the task at its agent and ends the call. No more events of the task follow. */
  async cut(task: RunningTask, detached: Send, why: TaskCut): Promise<ReplyEnd> {
    const { link } = task;
    const { version, later, covered } = this.ask;
    const ended = await cancelAtAgent(this.asking(task, detached));
    const { bytes: heard } = this.measuring;
    const bytes = Math.max(heard, ended === null ? 0 : Buffer.byteLength(JSON.stringify(ended.value)));
    if (ended !== null && ended.event.state !== 'canceled' && why.reason !== 'too_large') {
      const { event, value } = ended;
      return this.over(task, { text: this.textOf(link, value), event, error: null, cut: null }, bytes);
    }
    const work = this.measuring.work(bytes);
    const canceled = ended?.event ?? null;
    return cutTask(this.deps, { ...task, call: this.call, version, later, covered, work, canceled }, why);
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

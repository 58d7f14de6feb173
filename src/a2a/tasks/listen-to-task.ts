import { GatewayError } from '#errors';
import { isObject, type JsonObject } from '#wire';
import { LISTEN_MS, type StreamQuota } from '#limits';
import { pinned } from '#catalog';
import { runFree, type Pipeline } from '#call';
import { ownerOf, type Task } from '#tasks';
import type { A2aRequest } from '../protocol/parse-request.ts';
import type { ReplyWriter } from '../protocol/reply-writer.ts';
import { type A2aResult, type EventTexts, NO_RESULT } from '../protocol/ending.ts';
import { createFanOut, type FanOut } from './fan-out.ts';
import { createTaskAdapter, type TaskAdapterDeps } from './task-adapter.ts';
import { exactly } from '../wire/edit-json.ts';
import { isTerminal, eventOf } from '../wire/events.ts';
import { translateError } from '../wire/errors.ts';
import { translateResult } from '../wire/translate.ts';
import type { A2aVersion } from '../wire/protocol.ts';

/**
 * Streams the events of a task to a client until the task ends or the client disconnects. Throws GatewayError
 * `rate_limit_exceeded` if the account listens to too many streams.
 */
export type ListenToTask = (ask: A2aRequest, task: Task, reply: ReplyWriter, gone: AbortSignal) => Promise<void>;

interface ListenToTaskDeps extends TaskAdapterDeps {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run'>;
  readonly places: StreamQuota;
}

/** A subscription at an agent, and its listeners at this gateway. Its events are JSON text in `version`. */
interface Subscription {
  readonly version: A2aVersion;
  readonly events: FanOut<string, A2aResult>;
  /** Ends the subscription. Called when no listener is left. */
  readonly leave: () => void;
}

/**
 * The timeout of the call is longer than the subscription by this margin, so that the subscription ends by itself and
 * not by an error of the call.
 */
const MARGIN_MS = 60_000;

/**
 * All listeners of a task share one subscription at its agent, in whatever version they speak. Listeners with other
 * extensions have their own subscription.
 */
export function createListenToTask(deps: ListenToTaskDeps): ListenToTask {
  const { pipeline, places } = deps;
  const open = new Map<string, Subscription>();

  function subscribe(key: string, ask: A2aRequest, task: Task): Subscription {
    const events = createFanOut<string, A2aResult>();
    const stop = new AbortController();
    const close = () => {
      clearTimeout(timer);
      if (open.get(key) === subscription) open.delete(key);
      stop.abort();
    };
    const timer = setTimeout(() => {
      close();
      events.end(NO_RESULT);
    }, LISTEN_MS).unref();
    const subscription: Subscription = { version: ask.version, events, leave: close };
    open.set(key, subscription);
    // The request names only the task, because its other parameters belong to one listener only.
    const params = { id: task.taskId };
    const request = { ...ask, params, paramsText: JSON.stringify(params) };
    poll(request, task, stop.signal, async ({ events: texts }) => {
      for (const { text } of texts) await events.push(text, Buffer.byteLength(text));
    })
      .finally(close)
      .then(
        (result) => events.end(result ?? NO_RESULT),
        (error: unknown) => events.fail(error),
      );
    return subscription;
  }

  async function poll(
    ask: A2aRequest,
    task: Task,
    gone: AbortSignal,
    onEvents?: (events: EventTexts) => Promise<void>,
  ): Promise<A2aResult | null> {
    const listens = ask.operation === 'subscribe';
    const call = {
      primitive: 'agent',
      caller: ask.caller,
      requestId: ask.requestId,
      target: pinned(task.offerId),
      method: listens ? 'tasks/resubscribe' : 'tasks/get',
      startAttempt: createTaskAdapter(deps, ask, task).startAttempt,
      traceparent: ask.traceparent,
      stream: listens,
      facts: () => ({ 'a2a.protocol.version': ask.version }),
      ...(listens ? { timeoutMs: LISTEN_MS + MARGIN_MS } : {}),
    } as const;
    return runFree(pipeline, call, gone, onEvents);
  }

  /** Shows the present task to a client that joins later, and resolves with it. null if nothing follows. */
  async function catchUp(ask: A2aRequest, task: Task, reply: ReplyWriter, gone: AbortSignal): Promise<unknown> {
    const params = { id: task.taskId };
    const result = await poll({ ...ask, operation: 'get', params, paramsText: JSON.stringify(params) }, task, gone);
    if (result === null) return null;
    if (result.error !== null) {
      await reply.refused(result.error);
      return null;
    }
    const text = ask.version === '1.0' ? `{"task":${result.text}}` : result.text!;
    const over = isTerminal(result.event?.state ?? null);
    await (over ? reply.result(text) : reply.event(text));
    return over ? null : JSON.parse(result.text!);
  }

  return async (ask, task, reply, gone) => {
    const place = places.take(ownerOf(ask.caller));
    if (place === null) {
      const { code, message } = places.refusal();
      throw new GatewayError(code, message, { retryAfterS: 1 });
    }
    const key = JSON.stringify([task.service, task.taskId, ask.extensions?.forAgent ?? null]);
    const { version, events, leave } = open.get(key) ?? subscribe(key, ask, task);
    const late = events.begun;
    const reader = events.join();
    const textOf = (text: string) =>
      version === ask.version
        ? text
        : JSON.stringify(translateResult('subscribe', version, ask.version, exactly(text)));
    const stop = () => reader.stop();
    gone.addEventListener('abort', stop, { once: true });
    place.over.addEventListener('abort', stop, { once: true });
    if (gone.aborted) stop();
    try {
      if (late) {
        const current = await catchUp(ask, task, reply, gone);
        if (current === null) return;
        reader.keep((waiting) =>
          undeliveredEvents(
            ask.version,
            current,
            waiting.map((text) => JSON.parse(textOf(text)) as unknown),
          ),
        );
      }
      for (;;) {
        const step = await reader.next();
        if (step === 'stopped') return gone.aborted ? undefined : await reply.close();
        if (step === 'behind') throw new GatewayError('service_unavailable', BEHIND, { retryAfterS: 1 });
        if ('item' in step) await reply.event(textOf(step.item));
        else if (step.end.error !== null) return await reply.refused(inVersion(step.end.error, version, ask.version));
        else if (step.end.text === null) return await reply.close();
        else return await reply.result(textOf(step.end.text));
      }
    } finally {
      gone.removeEventListener('abort', stop);
      reader.leave();
      place.leave();
      if (events.readers === 0) leave();
    }
  };
}

const BEHIND =
  'The stream was ended because its client reads more slowly than the agent writes. The task continues. Subscribe again, or read the task';

const inVersion = (error: NonNullable<A2aResult['error']>, from: A2aVersion, to: A2aVersion) =>
  from === to ? error : translateError(from, to, error);

/**
 * Which of the waiting events a client must still get after the shown task. The task was read while the events came, so
 * it has the output of some of them. Status events are always sent, because a status may be repeated. Of an artifact's
 * parts, those are dropped with which the shown artifact ends. All values are in `version`.
 */
export function undeliveredEvents(version: A2aVersion, task: unknown, waiting: readonly unknown[]): readonly boolean[] {
  const events = waiting.map((value) => eventOf(version, value));
  const isUpdate = events.map((event) => event?.kind === 'status' || event?.kind === 'artifact');
  const updates = events.flatMap((event, index) => {
    const artifact = event?.kind === 'artifact' ? event.value['artifact'] : undefined;
    if (!isObject(artifact)) return [];
    return [{ index, id: artifact['artifactId'], text: textOf(artifact), appends: event!.value['append'] === true }];
  });
  for (const [id, group] of Map.groupBy(updates, (update) => update.id)) {
    const count = toldOf(artifactIn(task, id), group);
    // An update without parts may be repeated, and may say that it is the last.
    for (const { index, text } of group.slice(0, count)) if (text !== '') isUpdate[index] = false;
  }
  return isUpdate;
}

interface Update {
  readonly text: string;
  readonly appends: boolean;
}

/** How many of the updates, from the first on, the shown artifact has already. null: it is not shown. */
function toldOf(text: string | null, updates: readonly Update[]): number {
  if (text === null) return 0;
  let count = 0;
  // Updates up to the next one that replaces the artifact make one text.
  for (let from = 0, next; from < updates.length; from = next) {
    next = updates.findIndex(({ appends }, index) => index > from && !appends);
    if (next === -1) next = updates.length;
    const texts = updates.slice(from, next).map(({ text }) => text);
    const start = updates[from]!.appends ? beginningAtEndOf(text, texts) : beginningThatIs(text, texts);
    if (start > 0) count = from + start;
  }
  return count;
}

/** The most texts, from the first on, that together are `whole`; 0 if none are. */
function beginningThatIs(whole: string, texts: readonly string[]): number {
  let end = 0;
  let at = 0;
  for (const [index, text] of texts.entries()) {
    if (!whole.startsWith(text, at)) break;
    at += text.length;
    if (at === whole.length) end = index + 1;
  }
  return end;
}

/** The most texts, from the first on, with which together `whole` ends; 0 if none. In linear time. */
function beginningAtEndOf(whole: string, texts: readonly string[]): number {
  const all = texts.join('');
  const end = whole.slice(-all.length);
  // For each beginning of `all`, the length of the longest shorter beginning with which it ends.
  const shorter = new Int32Array(all.length + 1);
  const longer = (length: number, code: number): number => {
    let at = length;
    while (at > 0 && (at === all.length || all.charCodeAt(at) !== code)) at = shorter[at]!;
    return all.charCodeAt(at) === code ? at + 1 : 0;
  };
  for (let at = 1; at < all.length; at++) shorter[at + 1] = longer(shorter[at]!, all.charCodeAt(at));
  let length = 0;
  for (let at = 0; at < end.length; at++) length = longer(length, end.charCodeAt(at));
  const counts = new Map<number, number>();
  let sum = 0;
  for (const [index, text] of texts.entries()) counts.set((sum += text.length), index + 1);
  while (length > 0 && !counts.has(length)) length = shorter[length]!;
  return length === 0 ? 0 : counts.get(length)!;
}

/** The parts of the artifact in a task, as textOf writes them; null if the task does not have it. */
function artifactIn(task: unknown, id: unknown): string | null {
  const artifacts = isObject(task) ? task['artifacts'] : undefined;
  if (!Array.isArray(artifacts)) return null;
  const artifact: unknown = artifacts.find((one) => isObject(one) && one['artifactId'] === id);
  return isObject(artifact) ? textOf(artifact) : null;
}

/** Parts as one text. Adjacent texts are joined, because some agents join them too. */
function textOf({ parts }: JsonObject): string {
  if (!Array.isArray(parts)) return '';
  return parts
    .map((part: unknown) =>
      isObject(part) && typeof part['text'] === 'string' ? part['text'] : `\0${JSON.stringify(part)}\0`,
    )
    .join('');
}

import {
  createEventReader,
  type JsonObject,
  OWN_TURN_BYTES,
  ownTurn,
  readJson,
  type SseEvent,
  UpstreamFailure,
} from '#wire';
import type { ErrorCode } from '#errors';
import { parseMessage } from '#json-rpc';
import type { GeneratedAdapter, ReplyEnd } from '#call';
import { type CallEvent, type ContentResult, type EventBatch, eventBatch, eventOf } from '#bridge';
import { ERROR } from '../wire/revisions.ts';
import { freeEnd } from '../request/ending.ts';
import type { McpEnd, McpResponse } from '../request/mcp-request.ts';
import { failureText, resultParts } from './content-parts.ts';

interface PartsAdapterOptions {
  /** The token that the server's progress notifications must have. */
  readonly progressToken: string;
  /** Most bytes of one event of a server. */
  readonly bytesMax: number;
  /** The message of the error if the tool asks for more input. */
  readonly askedForInput: string;
}

/** The provider adapter of a `tools/call` whose caller speaks another protocol. `messages` takes it to the server. */
export function partsAdapter(
  messages: GeneratedAdapter<McpResponse | null>,
  options: PartsAdapterOptions,
): GeneratedAdapter<ContentResult, EventBatch> {
  return {
    begin: (call) => messages.begin?.(call),
    startAttempt: (offer, send, signal, detached) =>
      inParts(messages.startAttempt(offer, send, signal, detached), options),
  };
}

async function* inParts(
  pieces: AsyncGenerator<Uint8Array, McpEnd, undefined>,
  options: PartsAdapterOptions,
): AsyncGenerator<EventBatch, ReplyEnd<ContentResult>, undefined> {
  const reader = createEventReader({ bytesMax: options.bytesMax });
  let over = false;
  try {
    for (;;) {
      const { done, value } = await pieces.next();
      if (done) {
        over = true;
        if ((value.result?.text.length ?? 0) > OWN_TURN_BYTES) await ownTurn();
        const { events, end } = await ending(value, options);
        for (const event of events) {
          const batch = eventBatch([event]);
          if (batch !== null) yield batch;
        }
        return end;
      }
      const events = reader.push(value).flatMap((event) => progress(event, options.progressToken));
      const batch = eventBatch(events, value.byteLength);
      if (batch !== null) yield batch;
    }
  } finally {
    if (!over) await pieces.return(NO_END);
  }
}

/** A value that nobody reads, because the attempt was aborted. */
const NO_END: McpEnd = freeEnd(null);

const PROGRESS_CHARS_MAX = 1_000;

function progress({ data }: SseEvent, token: string): readonly CallEvent[] {
  const message = data === '' ? null : parseMessage(data);
  if (
    message?.kind !== 'notification' ||
    message.method !== 'notifications/progress' ||
    message.params?.['progressToken'] !== token
  )
    return [];
  const { message: text, progress: at, total } = message.params;
  if (typeof text === 'string' && text !== '') return [{ type: 'progress', text: text.slice(0, PROGRESS_CHARS_MAX) }];
  return [{ type: 'progress', text: typeof at === 'number' && typeof total === 'number' ? `${at}/${total}` : null }];
}

/** The structure of an answer was checked when it came. */
const CHECKED = { jsonDepthMax: Infinity, jsonKeysMax: Infinity };

interface PartsEnd {
  readonly events: readonly CallEvent[];
  readonly end: ReplyEnd<ContentResult>;
}

async function ending(end: McpEnd, { askedForInput }: PartsAdapterOptions): Promise<PartsEnd> {
  const response = end.result === null ? null : parseMessage(end.result.text);
  if ((end.result?.text.length ?? 0) > OWN_TURN_BYTES) await ownTurn();
  if (response?.kind !== 'response')
    throw new UpstreamFailure('the provider ended its answer without a response', {
      retryable: false,
      attributedTo: 'provider',
    });
  const { result, error } = response;
  if (error !== undefined)
    return failed(end, error.message, error.code === ERROR.invalidParams ? 'unprocessable' : 'provider_unavailable');
  const members = result as JsonObject;
  // Nobody will answer the tool's question, so the lock is released at once.
  if (end.outcome === 'pending') return failed(end, askedForInput);
  if (end.outcome === 'free') return failed(end, failureText(members));
  if (end.outcome === 'cut') return { events: [], end: { ...end, result: toEnd(end, 'cut', failureText(members)) } };
  const rounded = resultParts(members);
  // Data is written again, so it needs the numbers that a double cannot hold.
  const parts = rounded.some(({ kind }) => kind === 'data')
    ? resultParts(((await readJson(Buffer.from(response.text), CHECKED)) as { readonly result: JsonObject }).result)
    : rounded;
  // Without an event for an empty text, the answer of a tool that returns nothing else would have no part at all.
  const events = parts.map((part) => eventOf(part));
  return { events, end: { ...end, result: toEnd(end, 'stop', null) } };
}

/** By default an error that the caller can correct or must accept, because the tool itself says why it failed. */
function failed(end: McpEnd, error: string, errorCode: ErrorCode = 'unprocessable'): PartsEnd {
  return { events: [], end: { ...end, outcome: 'free', result: { ...toEnd(end, 'failed', error), errorCode } } };
}

function toEnd(
  { usage }: Pick<ReplyEnd, 'usage'>,
  finish: ContentResult['finish'],
  error: string | null,
): ContentResult {
  const promptTokens = Number(usage?.prompt ?? 0n);
  return {
    finish,
    error,
    taskId: null,
    contextId: null,
    promptTokens,
    completionTokens: Number(usage?.completion ?? 0n),
  };
}

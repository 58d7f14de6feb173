import {
  type Dialect,
  endInSlices,
  inDialect,
  toHttpError,
  createSilent,
  type KeepAlive,
  type ReplySink,
  writeSlices,
  type ClientSink,
  toGatewayError,
} from '#http';
import { GatewayError } from '#errors';
import { lengthOf } from '#wire';
import { formatUsd, toUsdNumber, type Frame, type CancelSignal, type SettledFrame } from '#billing/amounts';
import { type StartedCall, wasCharged, answersOn, type PendingRequest, type Payer } from '#gateway';
import type { Config } from '#config';
import { type TargetAdapters, targetOf } from '#bridge';
import { type Blobs, createKeptReplies } from '#blobs';
import type { ChatResult } from './chat-end.ts';
import { addAlteredHeaders, type SentRequest } from './altered-headers.ts';
import { completeStrictly } from './whole-reply.ts';

/** Facts about a call that its reply states. */
export interface ReplyAbout {
  /** The id that the client gets: that of the call, or that of the run. */
  readonly id: string;
  /** The name that was called. */
  readonly model: string;
  readonly stream: boolean;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  readonly sent: SentRequest;
}

/** The call or run that answers a chat request. The tail of its last frame is a ChatResult. */
export interface StartedChat extends StartedCall {
  readonly about: ReplyAbout;
}

/**
 * Opens the call or run that answers a request, with the id `callId` from newCallId. Throws or rejects with
 * GatewayError.
 */
export type OpenChat = (callId: string, gone: CancelSignal) => StartedChat | Promise<StartedChat>;

interface ChatReplyOptions {
  readonly keepAlive: KeepAlive;
  /** Default `own`. */
  readonly dialect?: Dialect;
  /** Whether the client asked for the usage of a stream. Without effect in the own dialect, which always has it. */
  readonly asksUsage?: boolean;
  /**
   * Gets the errors that come after the status of a stream was sent, and the failures of runs whose client has left.
   */
  readonly onError: (error: unknown) => void;
}

const SSE_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
} as const;
/**
 * The head of a stream waits for the first event. So an earlier failure can still set the status, and the provider
 * is known. After this time the head is sent without the provider's name, because clients and proxies give up on a
 * silent connection.
 */
const HEAD_HELD_MS = 5_000;
const COMMENT = Buffer.from(': keep-alive\n\n');
/** A larger frame is written in slices. */
const LARGE_BYTES = 1024 * 1024;

/**
 * Writes the frames of a call to its client. Resolves when the reply has ended, or when the client is gone. Billing
 * then reads the remaining frames. The result says whether anything was charged; it is false if the client is gone.
 * Throws an error of the call only before the first byte, while the status can still be set.
 */
export async function writeChatReply(
  { about, frames }: StartedChat,
  sink: ReplySink,
  options: ChatReplyOptions,
): Promise<boolean> {
  const iterator = frames[Symbol.asyncIterator]();
  try {
    return await (about.stream
      ? writeStream(about, iterator, sink, options)
      : writeWhole(about, iterator, sink, options));
  } catch (error) {
    if (!sink.closed) throw error;
    return false;
  } finally {
    // This has no effect after the end. If the client left, the run is drained and settled in the background.
    iterator.return?.().catch(options.onError);
  }
}

async function writeWhole(
  about: ReplyAbout,
  iterator: AsyncIterator<Frame, unknown>,
  sink: ReplySink,
  { dialect }: ChatReplyOptions,
): Promise<boolean> {
  for (;;) {
    const next = await iterator.next();
    if (sink.closed) return false;
    if (next.done) throw new GatewayError('internal', 'Internal error');
    const { value } = next;
    if (value.type !== 'settled') continue;
    const { written, native, large, cut = null } = value.result as ChatResult;
    const rest = native
      ? native(costOf(value, false), cut)
      : written
        ? restWithUsage(value, false)
        : JSON.stringify(wholeBody(value, dialect));
    const pieces = large?.piecesOf(rest);
    const headers: Record<string, string | number> = {
      'content-type': 'application/json; charset=utf-8',
      'content-length': pieces ? lengthOf(pieces) : Buffer.byteLength(rest) + (written?.byteLength ?? 0),
      'x-generation-id': about.id,
      'x-provider': value.providerName,
    };
    addAlteredHeaders(headers, about.sent);
    if (!value.pending) headers['x-cost-usd'] = formatUsd(value.settlement.charged);
    if (value.receipt !== null) headers['x-receipt'] = value.receipt;
    sink.head(200, headers);
    if (written && written.byteLength > LARGE_BYTES) await writeSlices(written, sink);
    else if (written) sink.write(written);
    if (pieces) await endInSlices(pieces, sink);
    else sink.end(rest);
    return wasCharged(value);
  }
}

async function writeStream(
  about: ReplyAbout,
  iterator: AsyncIterator<Frame, unknown>,
  sink: ReplySink,
  { keepAlive, dialect = 'own', asksUsage = false, onError }: ChatReplyOptions,
): Promise<boolean> {
  let begun = false;
  let provider: string | null = null;
  const begin = () => {
    begun = true;
    const headers: Record<string, string | number> = { ...SSE_HEADERS, 'x-generation-id': about.id };
    if (provider !== null) headers['x-provider'] = provider;
    addAlteredHeaders(headers, about.sent);
    sink.head(200, headers);
  };
  const silent = createSilent(() => {
    if (sink.closed) return;
    if (!begun) {
      if (!about.sent.asked) return keepAlive.within(silent, HEAD_HELD_MS);
      // Another provider may still answer, so the head names no provider.
      provider = null;
      begin();
    }
    sink.write(COMMENT);
  });
  try {
    keepAlive.watch(silent);
    keepAlive.within(silent, HEAD_HELD_MS);
    for (;;) {
      const next = await iterator.next();
      if (sink.closed) return false;
      if (next.done) throw new GatewayError('internal', 'Internal error');
      const { value } = next;
      switch (value.type) {
        case 'head':
          provider = value.provider.name;
          break;
        case 'data':
          if (!begun) begin();
          silent.quietTicks = 0;
          if (value.data.byteLength > LARGE_BYTES) {
            // No keep-alive comment may be written in the middle of an event.
            keepAlive.forget(silent);
            await writeSlices(value.data, sink);
            if (sink.closed) return false;
            keepAlive.watch(silent);
          } else if (!sink.write(value.data)) {
            keepAlive.forget(silent);
            await sink.drained();
            if (sink.closed) return false;
            keepAlive.watch(silent);
          }
          break;
        case 'settled':
          provider ??= value.providerName;
          if (!begun) begin();
          sink.end(lastBytes(value, dialect === 'own' ? lastTogether : (end) => lastApart(end, about, asksUsage)));
          return wasCharged(value);
        case 'end':
      }
    }
  } catch (error) {
    if (!begun || sink.closed) throw error;
    onError(error);
    sink.fail(errorEvent(about, error, dialect));
    return false;
  } finally {
    keepAlive.forget(silent);
  }
}

/**
 * A reply in one piece, with its usage and its cost. An `error` would hide the content, so the reason of a cut goes
 * into a note.
 */
function wholeBody(settled: SettledFrame, dialect: Dialect = 'own'): Record<string, unknown> {
  const { body, cut } = settled.result as ChatResult;
  if (cut) body['tollgate'] = { ...(body['tollgate'] as object | undefined), note: toHttpError(cut).body.error };
  if (dialect === 'openai') completeStrictly(body);
  body['usage'] = usageWithCost(settled, false);
  return body;
}

/** The JSON text after `written` of a large reply: `usage` and the closing brace. */
const restWithUsage = (settled: SettledFrame, stream: boolean): string =>
  `,"usage":${JSON.stringify(usageWithCost(settled, stream))}}`;

const usageWithCost = (settled: SettledFrame, stream: boolean): Record<string, unknown> => ({
  ...(settled.result as ChatResult).usage,
  ...costOf(settled, stream),
});

/** The cost members of `usage`; empty while the cost is not known. */
function costOf(settled: SettledFrame, stream: boolean): Record<string, unknown> {
  const { costDetails, promptCost = 0n, completionCost = 0n } = settled.result as ChatResult;
  if (settled.pending) return {};
  const { charged, fee } = settled.settlement;
  const forCompletion = completionCost < charged ? completionCost : charged;
  const rest = charged - forCompletion;
  const details: Record<string, unknown> = {
    charged_usd: formatUsd(charged),
    fee_usd: formatUsd(fee),
    // Clients of this API parse both members as numbers, and fail if one is missing.
    upstream_inference_prompt_cost: toUsdNumber(promptCost < rest ? promptCost : rest),
    upstream_inference_completions_cost: toUsdNumber(forCompletion),
    ...costDetails,
  };
  // An agent may have made further calls, which are paid from the same lock.
  if (settled.runCost !== undefined) details['run_cost_usd'] = formatUsd(settled.runCost);
  // The headers of a stream are already sent, so its receipt is in the last chunk.
  if (stream && settled.receipt !== null) details['receipt'] = settled.receipt;
  return { cost: toUsdNumber(charged), cost_details: details };
}

function lastBytes(settled: SettledFrame, write: (settled: SettledFrame) => Buffer): Buffer {
  const { before, native, cut } = settled.result as ChatResult;
  const last = native ? Buffer.from(native(costOf(settled, true), cut ?? null)) : write(settled);
  return before ? Buffer.concat([before, last]) : last;
}

/** The end of a stream: the chunk with the finish reason has the usage. */
function lastTogether(settled: SettledFrame): Buffer {
  const { body, written, cut } = settled.result as ChatResult;
  if (written) return Buffer.concat([DATA, written, Buffer.from(`${restWithUsage(settled, true)}\n\n${DONE}`)]);
  const error = cut ? toHttpError(cut).body.error : body['error'];
  const usage = usageWithCost(settled, true);
  const event = { ...body, usage };
  return Buffer.from(eventOf(error ? errorFirst(error, event) : event) + (cut ? '' : DONE));
}

/** The end of a stream in OpenAI's dialect: the usage is in a chunk of its own, and only if the client asked for it. */
function lastApart(settled: SettledFrame, about: ReplyAbout, asksUsage: boolean): Buffer {
  const { body, written, cut } = settled.result as ChatResult;
  const { created = createdAt(about), provider = settled.providerName, error } = body;
  const base = { id: about.id, object: CHUNK, created, model: about.model, provider, choices: [] };
  const failed = error ? inDialect(error as OwnFault, 'openai') : null;
  const pieces = written
    ? [DATA, written, Buffer.from('}\n\n')]
    : [Buffer.from(eventOf(failed ? errorFirst(failed, body) : body))];
  if (asksUsage) pieces.push(Buffer.from(eventOf({ ...base, usage: usageWithCost(settled, true) })));
  // Clients stop reading at an error.
  if (cut) pieces.push(Buffer.from(eventOf(errorFirst(toHttpError(cut, 'openai').body.error, base))));
  else pieces.push(Buffer.from(DONE));
  return Buffer.concat(pieces);
}

type OwnFault = Parameters<typeof inDialect>[0];
const CHUNK = 'chat.completion.chunk';
const createdAt = ({ startedAt }: ReplyAbout): number => Math.floor(startedAt / 1000);

const eventOf = (event: object): string => `data: ${JSON.stringify(event)}\n\n`;
/** Some clients recognise an error only by the first member of its event. */
const errorFirst = (error: unknown, event: Readonly<Record<string, unknown>>): object =>
  Object.assign({ error }, event, { error });

const DATA = Buffer.from('data: ');
const DONE = 'data: [DONE]\n\n';

/** The event that ends a failed stream. `[DONE]` does not follow, because the reply is not complete. */
function errorEvent(about: ReplyAbout, error: unknown, dialect: Dialect): Buffer {
  const event = {
    id: about.id,
    object: CHUNK,
    created: createdAt(about),
    model: about.model,
    choices: [{ index: 0, delta: { content: '' }, finish_reason: 'error' }],
  };
  return Buffer.from(eventOf(errorFirst(toHttpError(toGatewayError(error), dialect).body.error, event)));
}

/** The answer to one request, and its repeats. */
type ChatAnswers = Pick<PendingRequest<StartedChat>, 'repeats' | 'write' | 'replay'>;

interface PendingChat extends Pick<Payer, 'caller' | 'repeats'> {
  readonly model: string;
  readonly onError: (error: unknown) => void;
}

export interface ChatAnswersDeps {
  readonly config: Pick<Config, 'upstream'>;
  /**
   * Agents and tools that a request can name instead of a model: `a2a/<agent>`, `mcp/<service>/<tool>`. Called for
   * each request. Default: none.
   */
  readonly targets?: () => Partial<TargetAdapters>;
  /**
   * Stores large answers of image models, so that a repeat of the request gets the same answer. Default: they are
   * not stored.
   */
  readonly blobs?: Pick<Blobs, 'write' | 'find' | 'read'>;
}

/**
 * Writes the answers of a chat route, and repeats them when a request repeats its idempotency key. Answers of image
 * models may be too large for the database, so they are stored as files.
 */
export function createChatAnswers({
  blobs,
  config,
  targets,
}: ChatAnswersDeps): (
  client: ClientSink,
  asked: PendingChat,
  write: (opened: StartedChat, sink: ReplySink) => Promise<boolean>,
) => ChatAnswers {
  const files = blobs ? createKeptReplies(blobs, config.upstream.imagesReplyBytesMax) : null;
  const isPainted = (model: string) => targetOf(targets?.() ?? {}, model)?.target.primitive === 'image';

  return (client, { caller: { account }, repeats, model, onError }, write) => {
    if (repeats === null || files === null || !isPainted(model)) return { repeats, ...answersOn(client, write) };
    return {
      repeats: { ...repeats, taken: (by) => files.repeat(account, by, client) },
      ...answersOn<StartedChat>(client, write, {
        bytesMax: files.bytesMax,
        keep: ({ id }, head, chunks) => files.keep(account, id, head, chunks).catch(onError),
      }),
    };
  };
}

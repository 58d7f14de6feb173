import { createSilent, endInSlices, type ClientSink, type KeepAlive, type ReplySink, writeSlices } from '#http';
import { GatewayError } from '#errors';
import { type LargeStrings, lengthOf, STREAM_HEADERS } from '#wire';
import { formatUsd, type CancelSignal, type SettledFrame } from '#billing/amounts';
import {
  answerUndelivered,
  isReadOn,
  onceSettled,
  type PaidAnswer,
  type Payer,
  READ_ON,
  spentOn,
  type StartedCall,
} from '#call';
import type { Config } from '#config';
import { type CallEvent, type TargetAdapters, targetOf } from '#bridge';
import { type Blobs, createKeptReplies } from '#files';
import type { ChatPiece, ChatResult } from './chat-end.ts';
import { addAlteredHeaders, type ReplyHeaders, type SentRequest } from '../request/altered-headers.ts';

export interface ReplyAbout {
  /** The id that the client gets: that of the call, or that of the run. */
  readonly id: string;
  readonly model: string;
  readonly stream: boolean;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  readonly sent: SentRequest;
}

export interface StartedChat extends StartedCall<ChatResult, ChatPiece> {
  readonly about: ReplyAbout;
}

/**
 * Opens the call or run that answers a request, with the id `callId` from newCallId. Throws or rejects with
 * GatewayError.
 */
export type OpenChat = (callId: string, gone: CancelSignal) => StartedChat | Promise<StartedChat>;

export interface ReplyEncoder {
  /** `content-type` of a stream. */
  readonly streamType: string;
  /** The head of the reply, made of that of a chat reply. */
  headers(chat: ReplyHeaders): ReplyHeaders;
  begin(): void;
  /** Bytes of a provider that speaks the client's wire. They are returned unchanged. */
  pass(bytes: Uint8Array): Uint8Array;
  events(events: readonly CallEvent[], provider: string): string;
  keepAlive(): Uint8Array;
  end(settled: SettledChat): Uint8Array;
  /** The end of a stream that failed after its head was sent. */
  fail(error: unknown): Uint8Array;
  whole(settled: SettledChat): WholeReply;
}

export type SettledChat = SettledFrame<ChatResult>;

interface WholeReply {
  /** HTTP status; default 200. */
  readonly status?: number;
  readonly before?: Uint8Array | undefined;
  readonly text: string;
  /** The large strings that the text has only marks of. */
  readonly large?: LargeStrings | undefined;
}

interface ChatReplyOptions {
  readonly encoder: (startedCall: StartedChat) => ReplyEncoder;
  readonly keepAlive: KeepAlive;
  /** An error in the form of the wire, for a reply of which nothing came. Absent: it is an empty one, with a note. */
  readonly toHttp?: Parameters<typeof answerUndelivered>[4];
  /**
   * Gets the errors that come after the status of a stream was sent, and the failures of runs whose client has left.
   */
  readonly onError: (error: unknown) => void;
}

export const EVENT_STREAM = 'text/event-stream; charset=utf-8';

/** A larger frame is written in slices. */
const LARGE_BYTES = 1024 * 1024;

/**
 * Writes the frames of a call to its client. Resolves when the reply has ended, or when the client is gone. Billing
 * then reads the remaining frames. The result says whether anything was charged; it is false if the client is gone.
 * Throws an error of the call only before the first byte, while the status can still be set.
 */
export function writeChatReply(startedCall: StartedChat, sink: ReplySink, options: ChatReplyOptions): Promise<boolean> {
  const encoder = options.encoder(startedCall);
  if (startedCall.about.stream) return writeStream(startedCall, sink, encoder, options);
  return onceSettled(startedCall, sink, options.onError, (settled) => {
    const { cut } = settled;
    return cut?.undelivered && options.toHttp
      ? answerUndelivered(startedCall.about.id, settled, cut, sink, options.toHttp)
      : writeWhole(startedCall.about, settled, sink, encoder);
  });
}

function writeWhole(
  about: ReplyAbout,
  settled: SettledChat,
  sink: ReplySink,
  encoder: ReplyEncoder,
): boolean | Promise<boolean> {
  const { status = 200, before, text, large } = encoder.whole(settled);
  const pieces = large?.piecesOf(text);
  const headers: Record<string, string | number> = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': pieces ? lengthOf(pieces) : Buffer.byteLength(text) + (before?.byteLength ?? 0),
    'x-generation-id': about.id,
    'x-provider': settled.providerName,
  };
  addAlteredHeaders(headers, about.sent);
  if (!settled.pending) headers['x-cost-usd'] = formatUsd(spentOn(settled));
  if (settled.receipt !== null) headers['x-receipt'] = settled.receipt;
  sink.head(status, encoder.headers(headers));
  if (before || pieces) return endLarge(before, pieces ?? [Buffer.from(text)], sink).then(() => spentOn(settled) > 0n);
  sink.end(text);
  return spentOn(settled) > 0n;
}

async function endLarge(before: Uint8Array | undefined, rest: Iterable<Uint8Array>, sink: ReplySink): Promise<void> {
  if (before && before.byteLength > LARGE_BYTES) await writeSlices(before, sink);
  else if (before) sink.write(before);
  await endInSlices(rest, sink);
}

async function writeStream(
  { about, call, frames }: StartedChat,
  sink: ReplySink,
  encoder: ReplyEncoder,
  { keepAlive, onError }: ChatReplyOptions,
): Promise<boolean> {
  const iterator = frames[Symbol.asyncIterator]();
  let begun = false;
  let provider: string | null = null;
  let readsOn = false;
  const begin = () => {
    begun = true;
    const headers: Record<string, string | number> = {
      'content-type': encoder.streamType,
      ...STREAM_HEADERS,
      'x-generation-id': about.id,
    };
    if (provider !== null) headers['x-provider'] = provider;
    if (readsOn) Object.assign(headers, READ_ON);
    addAlteredHeaders(headers, about.sent);
    sink.head(200, encoder.headers(headers));
    encoder.begin();
  };
  const silent = createSilent(() => {
    if (sink.closed) return;
    if (!begun) {
      if (!about.sent.isRequested) return keepAlive.soon(silent);
      // Another provider may still answer, so the head names no provider.
      provider = null;
      readsOn = call?.candidates.some(({ offer }) => isReadOn(call, offer)) === true;
      begin();
    }
    sink.write(encoder.keepAlive());
  });
  try {
    keepAlive.watch(silent);
    // The head of a stream waits for the first event. So an earlier failure can still set the status, and the provider
    // is known. After 5 s, a third of the usual silence, the head is sent without the provider's name, because clients
    // and proxies give up on a silent connection.
    keepAlive.soon(silent);
    for (;;) {
      const next = await iterator.next();
      if (sink.closed) return false;
      if (next.done) throw new GatewayError('internal', 'Internal error');
      const { value } = next;
      switch (value.type) {
        case 'head':
          provider = value.provider.name;
          readsOn = value.isReadOn === true;
          break;
        case 'data':
          if (!begun) begin();
          silent.quietTicks = 0;
          for (const bytes of bytesOf(encoder, value.data, provider)) {
            const isLarge = bytes.byteLength > LARGE_BYTES;
            if (!isLarge && sink.write(bytes)) continue;
            // No keep-alive comment may be written in the middle of an event.
            keepAlive.forget(silent);
            await (isLarge ? writeSlices(bytes, sink) : sink.drained());
            if (sink.closed) return false;
            keepAlive.watch(silent);
          }
          break;
        case 'settled':
          provider ??= value.providerName;
          if (!begun) begin();
          sink.end(encoder.end(value));
          return spentOn(value) > 0n;
        case 'end':
      }
    }
  } catch (error) {
    if (sink.closed) return false;
    if (!begun) throw error;
    onError(error);
    sink.fail(encoder.fail(error));
    return false;
  } finally {
    keepAlive.forget(silent);
    // This has no effect after the end. If the client left, the run is drained and settled in the background.
    iterator.return?.().catch(onError);
  }
}

function bytesOf(encoder: ReplyEncoder, piece: ChatPiece, provider: string | null): Iterable<Uint8Array> {
  if (piece instanceof Uint8Array) return [encoder.pass(piece)];
  const text = encoder.events(piece.events, provider ?? '');
  if (text === '') return NOTHING;
  return piece.large ? piece.large.piecesOf(text) : [Buffer.from(text)];
}

const NOTHING: readonly Uint8Array[] = [];

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

interface PendingChat extends Pick<Payer, 'caller'> {
  readonly model: string;
  readonly onError: (error: unknown) => void;
}

/**
 * How answers are kept for repeats that are too large for the database: those of image models, which are stored as
 * files.
 */
export function createLargeAnswers({
  blobs,
  config,
  targets,
}: ChatAnswersDeps): (
  client: ClientSink,
  pending: PendingChat,
) => Pick<PaidAnswer<StartedChat>, 'takeKey' | 'largeAnswers'> {
  const files = blobs ? createKeptReplies(blobs, config.upstream.imagesReplyBytesMax) : null;
  return (client, { caller: { account }, model, onError }) => {
    if (files === null || targetOf(targets?.() ?? {}, model)?.target.primitive !== 'image') return NONE;
    return {
      takeKey: (takenKey) => files.repeat(account, takenKey, client),
      largeAnswers: {
        bytesMax: files.bytesMax,
        keep: ({ id }, head, chunks) => files.keep(account, id, head, chunks).catch(onError),
      },
    };
  };
}

const NONE = {};

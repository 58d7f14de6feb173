import {
  BOUNDS,
  tooLarge,
  UpstreamFailure,
  retryAfterOf,
  toFailure,
  guardInTurns,
  hasByteOrderMark,
  markLargeStrings,
  OWN_TURN_BYTES,
  ownTurn,
  createEventReader,
  isPromise,
  elementsOf,
  type SseEvent,
  splice,
  isObject,
  RawJsonError,
  createReplyBytes,
  inTurns,
  type LargeStrings,
} from '#wire';
import type { UpstreamReply } from '#call';
import {
  createMessageParser,
  exactId,
  parseMessage,
  type JsonRpcMessage,
  type RequestId,
  type RequestMessage,
  type ResponseMessage,
} from './message.ts';

/**
 * One message of a server. `raw`: the text of an event with this message; null for a JSON reply.
 */
export interface Received {
  readonly message: JsonRpcMessage;
  readonly raw: string | null;
  readonly eventId: string | null;
}

/** An event without a message. It may set an event id, or the time to wait before a reconnect. */
export interface Marker {
  readonly message: null;
  readonly raw: string;
  /** Whether the event has data. The data is not a JSON-RPC message, so clients do not get the event. */
  readonly unread: boolean;
  readonly eventId: string | null;
  readonly retryMs: number | null;
}

interface MessageReadOptions {
  readonly strict?: boolean;
  readonly large?: LargeReply | undefined;
}

/**
 * The messages of a server's reply (JSON or an event stream) as they arrive: those of one read together. A reply with a
 * status of 400 or above counts if its body is a JSON-RPC message. Throws UpstreamFailure for anything else, and for a
 * body or event of more than `bytesMax` bytes, after the messages before it. `strict`: throws UpstreamFailure also for
 * an event whose data is not a message, and for an array of messages. `large`: see readText.
 */
export async function* readBatches(
  reply: UpstreamReply,
  bytesMax: number,
  { strict = false, large }: MessageReadOptions = {},
): AsyncGenerator<readonly (Received | Marker)[], void, undefined> {
  if (!hasEvents(reply)) return yield await readBody(reply, bytesMax, !strict, large);
  // In other streams at most one event is a response.
  const parse = strict ? createMessageParser() : parseMessage;
  for await (const events of readEventData(reply, bytesMax, large)) {
    const read: (Received | Marker)[] = [];
    try {
      for (const event of events) {
        if (event.data.length > UNGUARDED_MAX) await guardEvent(event.data, reply.status);
        read.push(...messagesOf(event, reply, strict, parse));
      }
    } finally {
      if (read.length > 0) yield read;
    }
  }
}

/** The messages of readBatches one by one. */
export async function* readReply(
  reply: UpstreamReply,
  bytesMax: number,
): AsyncGenerator<Received | Marker, void, undefined> {
  for await (const messages of readBatches(reply, bytesMax)) yield* messages;
}

/** Whether a reply is an event stream. Otherwise it is one message. */
export function hasEvents({ status, headers }: UpstreamReply): boolean {
  const type: unknown = headers['content-type'];
  // A repeated header can be an array.
  return (
    status === 200 && typeof type === 'string' && type.split(';', 1)[0]?.trim().toLowerCase() === 'text/event-stream'
  );
}

/**
 * The whole body of a reply as text, without a byte order mark, which the clients of MCP drop too. Its size and
 * structure are bounded, so that parsing it does not block other calls for long. Throws UpstreamFailure if it is too
 * large. `large`: the large strings of a large body are replaced by marks, and `bytesMax` is the limit for the rest.
 */
export async function readText(reply: UpstreamReply, bytesMax: number, large?: LargeReply): Promise<string> {
  const body = await readBytes(reply, bytesMax, large);
  if (body.byteLength > OWN_TURN_BYTES) await ownTurn();
  try {
    await guard(body, reply.status);
  } catch (error) {
    if (!(error instanceof UpstreamFailure) || error.tooLarge) throw error;
    throw unreadable(error.message, reply, body.toString('utf8', 0, SAID_MAX), error.cause);
  }
  // Whoever asked for the text parses it in the turn in which it is there.
  if (body.byteLength > OWN_TURN_BYTES) await ownTurn();
  return body.toString('utf8', hasByteOrderMark(body) ? 3 : 0);
}

/** The message of a reply that is a single message. Throws like readReply. */
export async function readOne(reply: UpstreamReply, bytesMax: number): Promise<Received> {
  return (await readBody(reply, bytesMax, false))[0]!;
}

async function readBody(
  reply: UpstreamReply,
  bytesMax: number,
  batches: boolean,
  large?: LargeReply,
): Promise<readonly Received[]> {
  const text = await readText(reply, bytesMax, large);
  if (text.length > OWN_TURN_BYTES) await ownTurn();
  const message = parseMessage(text);
  const messages = message ? [message] : batches ? readBatch(text) : [];
  if (messages.length === 0)
    throw unreadable(
      reply.status >= 300
        ? `the provider answered with status ${reply.status}`
        : 'the provider answered with no JSON-RPC message',
      reply,
      text,
    );
  return messages.map((one) => ({ message: scrubbed(one, reply), raw: null, eventId: null }));
}

/** Most messages in one array of a server. */
const BATCH_MAX = 1_000;

/**
 * The messages of an array, which revision 2025-03-26 of MCP has. Elements that are not messages are left out. Empty
 * for any other text, and for an array that is too long.
 */
function readBatch(text: string): readonly JsonRpcMessage[] {
  if (!/^[\t\n\r ]*\[/.test(text)) return [];
  try {
    const elements = elementsOf(text, 0, BATCH_MAX + 1);
    if (elements.length > BATCH_MAX) return [];
    return elements.flatMap(({ start, end }) => parseMessage(text.slice(start, end)) ?? []);
  } catch (error) {
    if (error instanceof RawJsonError) return [];
    throw error;
  }
}

/**
 * The whole events of a reply as they arrive: those of one read together. Throws UpstreamFailure for an event that is
 * too large, after the events before it. `large`: as readText.
 */
export async function* readEventData(
  reply: UpstreamReply,
  bytesMax: number,
  large?: LargeReply,
): AsyncGenerator<readonly SseEvent[], void, undefined> {
  const reader = createEventReader(
    large === undefined ? { bytesMax } : { bytesMax: large.bytesMax, largeOver: largeOver(bytesMax) },
  );
  const most = large?.bytesMax ?? bytesMax;
  /** Bytes since the last event. */
  let bytes = 0;
  for (;;) {
    const chunks = await reply.read();
    let events: readonly SseEvent[] = [];
    let fault: UpstreamFailure | null = null;
    try {
      if (chunks === null) events = reader.end();
      else
        for (const chunk of chunks)
          events = events.length === 0 ? reader.push(chunk) : [...events, ...reader.push(chunk)];
    } catch (error) {
      fault = tooLarge(`the provider sent an event of more than ${most} bytes`, {
        status: reply.status,
        received: most,
        cause: error,
      });
    }
    if (large === undefined || events.every(({ data, largeData }) => !largeData && data.length <= bytesMax)) {
      if (events.length > 0) yield events;
    } else for (const event of events) yield [await withoutLargeStrings(event, bytesMax, large, reply.status)];
    if (fault !== null) throw fault;
    if (chunks === null) return;
    bytes = events.length > 0 ? 0 : chunks.reduce((sum, { byteLength }) => sum + byteLength, bytes);
    await reply.memory?.keeps(bytes);
  }
}

async function withoutLargeStrings(
  event: SseEvent,
  bytesMax: number,
  { strings }: LargeReply,
  status: number,
): Promise<SseEvent> {
  const { largeData } = event;
  const text = largeData === undefined ? null : await markLargeStrings(largeData, strings);
  const bytes = text?.byteLength ?? event.data.length;
  if (bytes > bytesMax)
    throw tooLarge(`the provider sent an event of more than ${bytesMax} bytes without its files`, {
      status,
      received: largeData?.byteLength ?? bytes,
    });
  return text === null ? event : { ...event, data: text.toString() };
}

/**
 * The messages of an event. An event without one may be a keep-alive, such as `event: ping`. Clients of MCP skip it, so
 * it ends no call. An event with another name than `message` is still a message if it parses as one.
 */
function messagesOf(
  { data, raw, id, retry }: SseEvent,
  reply: UpstreamReply,
  strict: boolean,
  parse: typeof parseMessage,
): readonly (Received | Marker)[] {
  const parsedMessage = data === '' ? null : parse(data);
  if (parsedMessage) {
    const message = scrubbed(parsedMessage, reply);
    return [{ message, raw: message.text === data ? raw : eventOf(message.text, id), eventId: id }];
  }
  const unread = data !== '';
  if (unread && strict) throw broken('the provider sent an event that is no JSON-RPC message', reply.status);
  const batch = unread ? readBatch(data) : [];
  if (batch.length === 0) return [{ message: null, raw, unread, eventId: id, retryMs: retry }];
  return batch.map((one, index) => {
    const message = scrubbed(one, reply);
    // A stream that breaks in the middle of the array is resumed before it.
    const eventId = index === batch.length - 1 ? id : null;
    return { message, raw: eventOf(message.text, eventId), eventId };
  });
}

/**
 * Removes the secrets of the endpoint from a message before a client sees it. Applies to errors, and to results with
 * `isError`.
 */
function scrubbed<M extends JsonRpcMessage | null | undefined>(message: M, { scrub }: UpstreamReply): M {
  if (message?.kind !== 'response') return message;
  const { error, result } = message;
  if (error === undefined && !(isObject(result) && result['isError'] === true)) return message;
  const member = error === undefined ? 'result' : 'error';
  const { start, end } = message.members.get(member)!;
  const words = message.text.slice(start, end);
  const text = scrub(words);
  return text === words ? message : (parseMessage(splice(message.text, [{ start, end, text }])) as M);
}

/**
 * The response with the id as the request has it; null for a response to another request. Some servers write a numeric
 * id as a string, and the clients of their language accept that. A request whose id is rounded must have been sent with
 * its `exactId`.
 */
export function answerTo(
  request: Pick<RequestMessage, 'id' | 'idText'>,
  response: ResponseMessage,
): ResponseMessage | null {
  const { id, idText } = request;
  const exact = exactId(request);
  if (response.id === id && exact === id) return response;
  return typeof id === 'number' && response.id === String(exact) ? withIdText(response, idText) : null;
}

/**
 * The only answer to a request, with the id as the request has it. The server may have rounded a large id, or written a
 * number as a string. null for a response to another request.
 */
export function onlyAnswerTo(
  request: Pick<RequestMessage, 'id' | 'idText'>,
  response: ResponseMessage,
): ResponseMessage | null {
  return isIdOf(response, request.id) || isIdOf(response, exactId(request))
    ? withIdText(response, request.idText)
    : null;
}

function withIdText(response: ResponseMessage, idText: string): ResponseMessage {
  if (response.idText === idText) return response;
  const { start, end } = response.members.get('id')!;
  return parseMessage(splice(response.text, [{ start, end, text: idText }])) as ResponseMessage;
}

/** Whether a response answers the request with the id `requestId`, which the server may have written as a string. */
export const isIdOf = ({ id }: Pick<ResponseMessage, 'id'>, requestId: RequestId): boolean =>
  id === requestId || (typeof requestId === 'number' && id === String(requestId));

/**
 * Throws UpstreamFailure for a response whose id is not `requestId`. Such a response is malformed, and nothing is
 * charged for it. An error may have no id if the server could not read the request.
 */
export function refuseOtherAnswer(response: ResponseMessage, requestId: RequestId, status: number | null): void {
  const { id, idText, error } = response;
  if (isIdOf(response, requestId) || (id === null && error !== undefined)) return;
  const [answeredId, right] = [idText.slice(0, ID_SHOWN), JSON.stringify(requestId).slice(0, ID_SHOWN)];
  throw broken(`the provider's response has the id ${answeredId}, but the request has the id ${right}`, status);
}

const ID_SHOWN = 64;

/**
 * An event with one message. The text may contain line feeds, although JSON.stringify writes none: the text around the
 * scrubbed error comes from the server.
 */
function eventOf(text: string, id: string | null): string {
  return `${id === null ? '' : `id: ${id}\n`}${text
    .split('\n')
    .map((line) => `data: ${line}\n`)
    .join('')}\n`;
}

/** Parses a message from an event. Rejects with UpstreamFailure if it has more structure than BOUNDS.message. */
export async function parseGuarded(data: string, status: number): Promise<ReturnType<typeof parseMessage>> {
  if (data.length > UNGUARDED_MAX) await guardEvent(data, status);
  return parseMessage(data);
}

/** Rejects as `guard`. The text is copied, and may be parsed afterwards, in turns of their own if it is large. */
async function guardEvent(data: string, status: number): Promise<void> {
  const isLarge = data.length > OWN_TURN_BYTES;
  if (isLarge) await ownTurn();
  const bytes = Buffer.from(data);
  if (isLarge) await ownTurn();
  await guard(bytes, status);
  if (isLarge) await ownTurn();
}

/** A text up to this length cannot have much structure, so it is not checked. */
const UNGUARDED_MAX = 16 * 1024;

/** Rejects with UpstreamFailure for more structure than BOUNDS.message. */
async function guard(body: Buffer, status: number): Promise<void> {
  if (body.byteLength <= UNGUARDED_MAX) return;
  try {
    await guardInTurns(body, BOUNDS.message);
  } catch (error) {
    throw tooLarge('the answer of the provider has more structure than is read', {
      status,
      received: body.byteLength,
      cause: error,
    });
  }
}

/** Never retryable, because a tool may have acted before its reply broke. */
function broken(message: string, status: number | null, cause?: unknown): UpstreamFailure {
  return new UpstreamFailure(message, {
    status,
    retryable: false,
    attributedTo: 'provider',
    ...(cause === undefined ? {} : { cause }),
  });
}

/**
 * The failure of a reply whose body, `text`, is no message: such as that of a proxy before the server, which has too
 * many requests and says when to come back. Never retryable, as `broken`.
 */
export function unreadable(
  message: string,
  { status, headers, scrub }: Pick<UpstreamReply, 'status' | 'headers' | 'scrub'>,
  text: string,
  cause?: unknown,
): UpstreamFailure {
  const start = Buffer.from(scrub(text.slice(0, SAID_MAX)));
  const { replyText, busy, detail, retryAfterS } = toFailure(status, start, retryAfterOf(headers['retry-after']));
  return new UpstreamFailure(message, {
    status,
    retryable: false,
    attributedTo: 'provider',
    replyText,
    ...(status < 400 ? {} : { busy, retryAfterS, detail: busy === null ? null : detail }),
    ...(cause === undefined ? {} : { cause }),
  });
}

/** Characters of a reply in which the words of its server are looked for. */
export const SAID_MAX = 64 * 1024;

/** How a reply with large strings is read. */
export interface LargeReply {
  /** Receives the large strings. The text has their marks instead. */
  readonly strings: LargeStrings;
  /** Most bytes of the reply with them. */
  readonly bytesMax: number;
}

/** A larger text is read in several turns of the event loop, and its large strings are not parsed. */
const LARGE_TEXT_BYTES = 1024 * 1024;

/** The size above which the large strings of a text are not parsed. `textBytesMax`: the limit for the rest. */
const largeOver = (textBytesMax: number): number => Math.min(LARGE_TEXT_BYTES, textBytesMax);

/**
 * The whole body of a reply. Rejects with UpstreamFailure if it is too large. `large`: the large strings of a large
 * body are replaced by marks, and `bytesMax` is the limit for the rest.
 */
async function readBytes(reply: UpstreamReply, bytesMax: number, large?: LargeReply): Promise<Buffer> {
  if (large !== undefined) return readOutline(reply, bytesMax, large);
  const all: Uint8Array[] = [];
  const bytes = await readChunks(reply, bytesMax, (chunk) => all.push(chunk));
  return joined(all, bytes);
}

async function readOutline(
  reply: UpstreamReply,
  textBytesMax: number,
  { strings, bytesMax }: LargeReply,
): Promise<Buffer> {
  const first: Uint8Array[] = [];
  let rest: ReturnType<typeof createReplyBytes> | null = null;
  const smallMax = largeOver(textBytesMax);
  let bytes = 0;
  await readChunks(reply, bytesMax, (chunk) => {
    bytes += chunk.byteLength;
    if (rest === null) first.push(chunk);
    else rest.push(chunk);
    if (rest !== null || bytes <= smallMax) return;
    rest = createReplyBytes(declaredBytes(reply), bytesMax);
    for (const one of first.splice(0)) rest.push(one);
  });
  if (bytes <= smallMax) return joined(first, bytes);
  const text = await markLargeStrings(await inTurns(rest!.take()), strings);
  if (text.byteLength <= textBytesMax) return text;
  throw tooLarge(`the answer of the provider without its files is larger than ${textBytesMax} bytes`, {
    status: reply.status,
    received: bytes,
  });
}

function declaredBytes({ headers }: UpstreamReply): number | null {
  const declared = Number(headers['content-length'] ?? NaN);
  return Number.isSafeInteger(declared) ? declared : null;
}

/** Reads the body to its end, as fast as the memory for replies has room. Resolves with its size. */
async function readChunks(reply: UpstreamReply, bytesMax: number, take: (chunk: Uint8Array) => void): Promise<number> {
  let bytes = 0;
  for (;;) {
    const reading = reply.ended ? null : reply.read();
    const chunks = isPromise(reading) ? await reading : reading;
    if (chunks === null) return bytes;
    for (const chunk of chunks) {
      take(chunk);
      bytes += chunk.byteLength;
    }
    if (bytes > bytesMax)
      throw tooLarge(`the answer of the provider is larger than ${bytesMax} bytes`, {
        status: reply.status,
        received: bytes,
      });
    const room = reply.memory?.keeps(bytes) ?? null;
    if (room !== null) await room;
  }
}

const joined = (chunks: readonly Uint8Array[], bytes: number): Buffer =>
  chunks.length === 1 ? asBuffer(chunks[0]!) : Buffer.concat(chunks, bytes);

const asBuffer = (chunk: Uint8Array) =>
  Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);

/**
 * Makes the failure of a tool call not retryable, because the tool may already have acted. The failure stays retryable
 * if nothing of the request was sent.
 */
export function onceOnly(error: unknown): unknown {
  if (!(error instanceof UpstreamFailure) || !error.retryable || error.unsent) return error;
  return new UpstreamFailure(error.message, {
    ...error.providerFacts,
    retryable: false,
    attributedTo: error.attributedTo,
    cause: error,
  });
}

import {
  tooLarge,
  UpstreamFailure,
  guardStructure,
  TooMuchStructure,
  OWN_TURN_BYTES,
  ownTurn,
  createEventReader,
  type SseEvent,
  splice,
  isObject,
  parseMessage,
  type JsonRpcMessage,
  type RequestId,
  type ResponseMessage,
} from '#wire';
import type { UpstreamReply } from '../upstream.ts';

/**
 * One message of a server. `raw` is the text of the event that brought it, as it came; null of a JSON reply, which
 * is its one message.
 */
export interface Received {
  readonly message: JsonRpcMessage;
  readonly raw: string | null;
  readonly eventId: string | null;
}

/** An event without a message: it gives an id or a time to wait before a resumption. */
export interface Marker {
  readonly message: null;
  readonly raw: string;
  readonly eventId: string | null;
  readonly retryMs: number | null;
}

/**
 * The messages of a server's reply, JSON or events, one by one as they arrive. A status of 400 and above counts as
 * a reply where its body is a JSON-RPC message. Throws UpstreamFailure for anything else, and for more than
 * `bytesMax`.
 */
export async function* readReply(
  reply: UpstreamReply,
  bytesMax: number,
): AsyncGenerator<Received | Marker, void, undefined> {
  if (hasEvents(reply)) return yield* readEvents(reply, bytesMax);
  yield await readOne(reply, bytesMax);
}

/** Whether a reply is a stream of events; else it is one message. */
export function hasEvents({ status, headers }: UpstreamReply): boolean {
  const type: unknown = headers['content-type'];
  // It may stand twice, which is no type.
  return (
    status === 200 && typeof type === 'string' && type.split(';', 1)[0]?.trim().toLowerCase() === 'text/event-stream'
  );
}

/**
 * The whole body of a reply, as text that can be parsed without holding everybody up. Throws UpstreamFailure where
 * it is too large.
 */
export async function readText(reply: UpstreamReply, bytesMax: number): Promise<string> {
  const body = await readAll(reply, bytesMax);
  if (body.byteLength > OWN_TURN_BYTES) await ownTurn();
  guard(body, reply.status);
  return body.toString('utf8');
}

/** The message of a reply that is one. Throws as readReply does. */
export async function readOne(reply: UpstreamReply, bytesMax: number): Promise<Received> {
  const text = await readText(reply, bytesMax);
  if (text.length > OWN_TURN_BYTES) await ownTurn();
  const message = scrubbed(parseMessage(text), reply);
  if (!message)
    throw broken(
      reply.status >= 400
        ? `the provider answered with status ${reply.status}`
        : 'the provider answered with no JSON-RPC message',
      reply.status,
    );
  return { message, raw: null, eventId: null };
}

/**
 * Whole events of a reply as they arrive; `data` has no more structure than is read. Throws UpstreamFailure for
 * what is too large.
 */
export async function* readEventData(
  reply: UpstreamReply,
  bytesMax: number,
): AsyncGenerator<SseEvent, void, undefined> {
  const reader = createEventReader({ bytesMax });
  /** Bytes since the last event. */
  let kept = 0;
  for (;;) {
    const chunks = await reply.read();
    let events;
    try {
      events = chunks === null ? reader.end() : chunks.flatMap((chunk) => [...reader.push(chunk)]);
    } catch (error) {
      throw tooLarge(`the provider sent an event of more than ${bytesMax} bytes`, {
        status: reply.status,
        received: bytesMax,
        cause: error,
      });
    }
    yield* events;
    if (chunks === null) return;
    kept = events.length > 0 ? 0 : chunks.reduce((sum, { byteLength }) => sum + byteLength, kept);
    await reply.memory?.keeps(kept);
  }
}

async function* readEvents(reply: UpstreamReply, bytesMax: number): AsyncGenerator<Received | Marker, void, undefined> {
  for await (const { data, raw, id, retry } of readEventData(reply, bytesMax)) {
    if (data.length > OWN_TURN_BYTES) await ownTurn();
    const said = data === '' ? null : parseGuarded(data, reply.status);
    if (data !== '' && !said) throw broken('the provider sent an event that is no JSON-RPC message', reply.status);
    const message = scrubbed(said, reply);
    yield message
      ? { message, raw: message === said ? raw : eventOf(message.text, id), eventId: id }
      : { message: null, raw, eventId: id, retryMs: retry };
  }
}

/**
 * A message as its client may see it: an error, or a result that says it is one, without the secrets of the endpoint.
 */
function scrubbed<M extends JsonRpcMessage | null | undefined>(message: M, { scrub }: UpstreamReply): M {
  if (message?.kind !== 'response') return message;
  const { error, result, members } = message;
  if (error === undefined && !(isObject(result) && result['isError'] === true)) return message;
  const member = error === undefined ? 'result' : 'error';
  const { start, end } = members.get(member)!;
  const said = message.text.slice(start, end);
  const text = scrub(said);
  return text === said ? message : (parseMessage(splice(message.text, [{ start, end, text }])) as M);
}

/**
 * Throws UpstreamFailure for a response to another request than the one with this id: it is malformed, and nothing
 * is charged for it. An error about a request that the server could not read has no id.
 */
export function refuseOtherAnswer(
  { id, idText, error }: ResponseMessage,
  asked: RequestId,
  status: number | null,
): void {
  if (id === asked || (id === null && error !== undefined)) return;
  const [given, right] = [idText.slice(0, ID_SHOWN), JSON.stringify(asked).slice(0, ID_SHOWN)];
  throw broken(
    `the provider answered another request than it was asked: its id is ${given}, that of the request is ${right}`,
    status,
  );
}

const ID_SHOWN = 64;

/** An event with one message. JSON.stringify writes no line feeds, but what stands around the error may have them. */
function eventOf(text: string, id: string | null): string {
  return `${id === null ? '' : `id: ${id}\n`}${text
    .split('\n')
    .map((line) => `data: ${line}\n`)
    .join('')}\n`;
}

/** A message out of an event. Throws UpstreamFailure where it has more structure than is read. */
export function parseGuarded(data: string, status: number): ReturnType<typeof parseMessage> {
  if (data.length > UNGUARDED_MAX) guard(Buffer.from(data), status);
  return parseMessage(data);
}

/** A shorter text cannot have much structure. */
const UNGUARDED_MAX = 16 * 1024;
/**
 * A tool's answer may be large. Beyond this, reading it would hold up everybody's calls: 20,000 keys take some 30 ms.
 */
export const ANSWER_LIMITS = { jsonDepthMax: 256, jsonKeysMax: 20_000, jsonElementsMax: 200_000 } as const;

function guard(body: Buffer, status: number): void {
  if (body.byteLength <= UNGUARDED_MAX) return;
  try {
    guardStructure(body, ANSWER_LIMITS);
  } catch (error) {
    if (!(error instanceof TooMuchStructure))
      throw broken('the answer of the provider is nested deeper than any message', status, error);
    throw tooLarge('the answer of the provider has more structure than is read', {
      status,
      received: body.byteLength,
      cause: error,
    });
  }
}

async function readAll(reply: UpstreamReply, bytesMax: number): Promise<Buffer> {
  const all: Uint8Array[] = [];
  let bytes = 0;
  for (;;) {
    const reading = reply.ended ? null : reply.read();
    const chunks = reading instanceof Promise ? await reading : reading;
    if (chunks === null) return all.length === 1 ? asBuffer(all[0]!) : Buffer.concat(all, bytes);
    for (const chunk of chunks) {
      all.push(chunk);
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

const asBuffer = (chunk: Uint8Array) =>
  Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);

/** Never retryable: a tool may have acted before it broke. */
function broken(message: string, status: number | null, cause?: unknown): UpstreamFailure {
  return new UpstreamFailure(message, {
    status,
    retryable: false,
    blame: 'provider',
    ...(cause === undefined ? {} : { cause }),
  });
}

import type { ReplySink } from '#wire';
import type { SentRequest } from '../reply/altered-headers.ts';
import { type ChatPieces, createChatPieces, readCompletion } from './chat-pieces.ts';
import type { ClientId } from './sealed-calls.ts';
import { faultOf, type Voice } from './voice.ts';

interface TranslationOptions {
  readonly stream: boolean;
  /**
   * Makes the voice of the wire. Called at most once. A reply that passes unchanged needs no voice, except for pings
   * and errors.
   */
  readonly voice: () => Voice;
  /** Makes the ids of tool calls. Default: the provider's ids. */
  readonly idOf?: ClientId | undefined;
  /** Says whether the provider that answers speaks the wire. Its reply passes unchanged. */
  readonly sent: Pick<SentRequest, 'isNative'>;
  /** Changes the head of the chat reply into that of the wire. */
  readonly headers: (chat: Headers, isNative: boolean) => Headers;
}

type Headers = Readonly<Record<string, string | number>>;

const COLON = 0x3a;

/**
 * A sink that takes a chat reply and writes it to `client` in another wire. Head, keep-alive and end come at the
 * same moments as in the chat wire. So the rules for chat replies also hold for translated ones. A reply of a
 * provider that speaks the wire passes unchanged.
 */
export function translatingSink(client: ReplySink, options: TranslationOptions): ReplySink {
  return options.stream ? streamed(client, options) : whole(client, options);
}

function streamed(client: ReplySink, { voice: open, idOf, headers, sent }: TranslationOptions): ReplySink {
  let opened: { readonly voice: Voice; readonly pieces: ChatPieces } | null = null;
  const speaker = () => (opened ??= { voice: open(), pieces: createChatPieces(idOf) });
  /** The reply of a provider has begun, so no other provider is asked. */
  let isSettled = false;
  let begun = false;
  /** Pieces of an event that has not ended. */
  let held: Uint8Array[] = [];
  const said = (given: Uint8Array): Buffer => {
    held.push(given);
    if (!endsEvent(given)) return NOTHING;
    const bytes = held.length === 1 ? given : Buffer.concat(held);
    held = [];
    const { voice, pieces } = speaker();
    // If a candidate speaks the wire, the answering provider is known only with its first output.
    if (!begun) voice.begin();
    begun = true;
    const end = pieces.read(bytes, voice);
    if (end !== null) voice.end(end);
    return Buffer.from(voice.take());
  };
  const pinged = (): Buffer => {
    const { voice } = speaker();
    voice.ping();
    return Buffer.from(voice.take());
  };
  const failed = (bytes: Uint8Array): Buffer => {
    const { voice, pieces } = speaker();
    const end = pieces.read(bytes, voice);
    voice.failNative(faultOf(end!));
    return Buffer.from(voice.take());
  };
  return {
    get closed() {
      return client.closed;
    },
    head(status, chat) {
      client.head(status, headers(chat, sent.isNative === true));
      if (sent.isNative === undefined) {
        speaker().voice.begin();
        begun = true;
      }
    },
    flush: () => client.flush(),
    write(bytes) {
      const isComment = bytes[0] === COLON;
      if (!isComment) isSettled = true;
      const out =
        isComment && !begun ? pinged() : isComment && sent.isNative ? pinged() : sent.isNative ? bytes : said(bytes);
      return out.byteLength === 0 || client.write(out);
    },
    drained: () => client.drained(),
    end: (bytes) => client.end(sent.isNative ? bytes : said(asBytes(bytes))),
    fail: (bytes) => client.fail(sent.isNative && isSettled ? failed(bytes) : said(bytes)),
  };
}

/** The head waits for the end, because the translated reply has another length. */
function whole(client: ReplySink, { voice, idOf, headers, sent }: TranslationOptions): ReplySink {
  let head: Headers = {};
  const chunks: Uint8Array[] = [];
  const end = (bytes: Uint8Array | string) => {
    if (sent.isNative) {
      client.head(200, headers(head, true));
      return client.end(bytes);
    }
    chunks.push(asBytes(bytes));
    const { said, end: ended } = readCompletion(
      JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>,
      idOf,
    );
    const { status, body } = voice().whole(said, ended);
    const text = JSON.stringify(body);
    client.head(status, { ...headers(head, false), 'content-length': Buffer.byteLength(text) });
    client.end(text);
  };
  return {
    get closed() {
      return client.closed;
    },
    head: (_status, chat) => void (head = chat),
    flush: () => {},
    write: (bytes) => chunks.push(bytes) > 0,
    drained: () => client.drained(),
    end,
    fail: end,
  };
}

const NOTHING = Buffer.alloc(0);
const LINE_END = 0x0a;
/** Whether bytes end with the end of an event. A large event comes in pieces, which end in the middle of a line. */
const endsEvent = (bytes: Uint8Array): boolean => bytes.at(-1) === LINE_END;

const asBytes = (bytes: Uint8Array | string): Uint8Array => (typeof bytes === 'string' ? Buffer.from(bytes) : bytes);

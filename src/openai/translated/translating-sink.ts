import type { ReplySink } from '#http';
import type { SentRequest } from '../chat/altered-headers.ts';
import { type ChatPieces, createChatPieces, readCompletion } from '../chat/chat-decoder.ts';
import type { ClientId } from '../chat/echo-fields.ts';
import { faultOf, type WireEncoder } from './wire-encoder.ts';

interface TranslationOptions {
  readonly stream: boolean;
  /**
   * Makes the encoder of the wire. Called at most once. A reply that passes unchanged needs no encoder, except for
   * pings and errors.
   */
  readonly encoder: () => WireEncoder;
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
  return options.stream ? new StreamedTranslation(client, options) : new WholeTranslation(client, options);
}

class StreamedTranslation implements ReplySink {
  readonly #client: ReplySink;
  readonly #options: TranslationOptions;
  #opened: { readonly encoder: WireEncoder; readonly pieces: ChatPieces } | null = null;
  /** The reply of a provider has begun, so no other provider is asked. */
  #isSettled = false;
  #begun = false;
  /** Pieces of an event that has not ended. */
  #held: Uint8Array[] = [];

  constructor(client: ReplySink, options: TranslationOptions) {
    this.#client = client;
    this.#options = options;
  }

  get closed(): boolean {
    return this.#client.closed;
  }

  head(status: number, chat: Headers): void {
    const { headers, sent } = this.#options;
    this.#client.head(status, headers(chat, sent.isNative === true));
    if (sent.isNative === undefined) {
      this.#target().encoder.begin();
      this.#begun = true;
    }
  }

  flush(): void {
    this.#client.flush();
  }

  write(bytes: Uint8Array): boolean {
    const { isNative } = this.#options.sent;
    const isComment = bytes[0] === COLON;
    if (!isComment) this.#isSettled = true;
    const out = isComment && (!this.#begun || isNative) ? this.#pinged() : isNative ? bytes : this.#said(bytes);
    return out.byteLength === 0 || this.#client.write(out);
  }

  drained(): Promise<void> {
    return this.#client.drained();
  }

  end(bytes: Uint8Array | string): void {
    this.#client.end(this.#options.sent.isNative ? bytes : this.#said(asBytes(bytes)));
  }

  fail(bytes: Uint8Array): void {
    this.#client.fail(this.#options.sent.isNative && this.#isSettled ? this.#failed(bytes) : this.#said(bytes));
  }

  #target(): { readonly encoder: WireEncoder; readonly pieces: ChatPieces } {
    const { encoder: open, idOf } = this.#options;
    return (this.#opened ??= { encoder: open(), pieces: createChatPieces(idOf) });
  }

  #said(given: Uint8Array): Buffer {
    this.#held.push(given);
    if (!endsEvent(given)) return NOTHING;
    const bytes = this.#held.length === 1 ? given : Buffer.concat(this.#held);
    this.#held = [];
    const { encoder, pieces } = this.#target();
    // If a candidate speaks the wire, the answering provider is known only with its first output.
    if (!this.#begun) encoder.begin();
    this.#begun = true;
    const end = pieces.read(bytes, encoder);
    if (end !== null) encoder.end(end);
    return Buffer.from(encoder.take());
  }

  #pinged(): Buffer {
    const { encoder } = this.#target();
    encoder.ping();
    return Buffer.from(encoder.take());
  }

  #failed(bytes: Uint8Array): Buffer {
    const { encoder, pieces } = this.#target();
    const end = pieces.read(bytes, encoder);
    encoder.failNative(faultOf(end!));
    return Buffer.from(encoder.take());
  }
}

/** The head waits for the end, because the translated reply has another length. */
class WholeTranslation implements ReplySink {
  readonly #client: ReplySink;
  readonly #options: TranslationOptions;
  #head: Headers = {};
  readonly #chunks: Uint8Array[] = [];

  constructor(client: ReplySink, options: TranslationOptions) {
    this.#client = client;
    this.#options = options;
  }

  get closed(): boolean {
    return this.#client.closed;
  }

  head(_status: number, chat: Headers): void {
    this.#head = chat;
  }

  flush(): void {}

  write(bytes: Uint8Array): boolean {
    return this.#chunks.push(bytes) > 0;
  }

  drained(): Promise<void> {
    return this.#client.drained();
  }

  end(bytes: Uint8Array | string): void {
    const { encoder, idOf, headers, sent } = this.#options;
    if (sent.isNative) {
      this.#client.head(200, headers(this.#head, true));
      return this.#client.end(bytes);
    }
    this.#chunks.push(asBytes(bytes));
    const { said, end } = readCompletion(
      JSON.parse(Buffer.concat(this.#chunks).toString()) as Record<string, unknown>,
      idOf,
    );
    const { status, body } = encoder().whole(said, end);
    const text = JSON.stringify(body);
    this.#client.head(status, { ...headers(this.#head, false), 'content-length': Buffer.byteLength(text) });
    this.#client.end(text);
  }

  fail(bytes: Uint8Array): void {
    this.end(bytes);
  }
}

const NOTHING = Buffer.alloc(0);
const LINE_END = 0x0a;
/** Whether bytes end with the end of an event. A large event comes in pieces, which end in the middle of a line. */
const endsEvent = (bytes: Uint8Array): boolean => bytes.at(-1) === LINE_END;

const asBytes = (bytes: Uint8Array | string): Uint8Array => (typeof bytes === 'string' ? Buffer.from(bytes) : bytes);

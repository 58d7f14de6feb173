import { toGatewayError, toHttpError } from '#http';
import type { LargeStrings } from '#wire';
import { type CallEvent, jsonInside, textOf } from '#bridge';
import {
  chatEndOf,
  createToolCallIds,
  decodeChunk,
  imageText,
  saidBy,
  type ToolCallIds,
} from '../chat/reply/chat-decoder.ts';
import { costOf, usageWithCost, wholeBody } from '../chat/reply/chat-encoder.ts';
import { resultOf } from '../chat/reply/chat-end.ts';
import type { ReplyEncoder, SettledChat, StartedChat } from '../chat/reply/chat-reply.ts';
import type { ReplyHeaders } from '../chat/request/altered-headers.ts';
import type { ClientId } from '../chat/reply/echo-fields.ts';
import { failureOf, type WireEncoder } from './wire-encoder.ts';
import type { ChatFault } from '../chat/reply/chat-content.ts';

interface TranslatedEncoderOptions {
  readonly streamType: string;
  /**
   * Makes the encoder of the wire. Called at most once. A reply that passes unchanged needs no encoder, except for
   * pings and errors.
   */
  readonly encoder: (startedCall: StartedChat) => WireEncoder;
  /** Makes the ids of tool calls. Default: the provider's ids. */
  readonly idOf?: ClientId | undefined;
  /** Changes the head of a chat reply into that of the wire. */
  readonly headers: (chat: ReplyHeaders, isNative: boolean) => ReplyHeaders;
}

/**
 * Writes replies in another wire than chat. The reply of a provider that speaks the wire passes unchanged, except for
 * its end.
 */
export const createTranslatedEncoder =
  (options: TranslatedEncoderOptions) =>
  (startedCall: StartedChat): ReplyEncoder =>
    new TranslatedEncoder(startedCall, options);

class TranslatedEncoder implements ReplyEncoder {
  readonly #startedCall: StartedChat;
  readonly #options: TranslatedEncoderOptions;
  #wire: WireEncoder | null = null;
  #ids: ToolCallIds | null = null;
  /** The first events of the wire are written. */
  #begun = false;
  /** Something of a reply was written, so no other provider is asked. */
  #isSettled = false;

  constructor(startedCall: StartedChat, options: TranslatedEncoderOptions) {
    this.#startedCall = startedCall;
    this.#options = options;
  }

  get streamType(): string {
    return this.#options.streamType;
  }

  headers(chat: ReplyHeaders): ReplyHeaders {
    return this.#options.headers(chat, this.#isNative === true);
  }

  begin(): void {
    // If a candidate speaks the wire, the answering provider is known only with its first output.
    if (this.#isNative === undefined) this.#began();
  }

  pass(bytes: Uint8Array): Uint8Array {
    this.#isSettled = true;
    return bytes;
  }

  events(events: readonly CallEvent[]): string {
    const wire = this.#began();
    for (const event of events) this.#write(event, wire);
    return wire.take();
  }

  keepAlive(): Uint8Array {
    const wire = this.#encoder;
    wire.ping();
    return Buffer.from(wire.take());
  }

  end(settled: SettledChat): Uint8Array {
    const { before, body, native, large, cut = null } = resultOf(settled);
    // The end of a message that has not begun is no stream of the wire.
    if (native && settled.cut?.undelivered && cut) return this.#failed(toHttpError(cut).body.error);
    if (native) {
      const last = Buffer.from(native(costOf(settled, true), cut));
      return before instanceof Uint8Array ? Buffer.concat([before, last]) : last;
    }
    const wire = this.#began();
    if (before !== null && !(before instanceof Uint8Array)) for (const event of before.events) this.#write(event, wire);
    const failed = cut === null ? body : { ...body, error: toHttpError(cut).body.error };
    const end = chatEndOf(failed, usageWithCost(settled, true));
    const failure = failureOf(end);
    if (failure === null) wire.end(end);
    else wire.fail(failure, end);
    return withoutMarks(wire.take(), large);
  }

  fail(error: unknown): Uint8Array {
    return this.#failed(toHttpError(toGatewayError(error)).body.error);
  }

  #failed(fault: ChatFault): Uint8Array {
    const wire = this.#encoder;
    if (this.#isNative && this.#isSettled) wire.fail(fault, null);
    else this.#began().fail(fault, { ...FAILED, fault });
    return Buffer.from(wire.take());
  }

  whole(settled: SettledChat): ReturnType<ReplyEncoder['whole']> {
    const { native, large, cut = null } = resultOf(settled);
    if (native) return { text: native(costOf(settled, false), cut) };
    const { usage, ...body } = wholeBody(settled);
    const end = chatEndOf(body, usage as Readonly<Record<string, unknown>>);
    const failure = failureOf(end);
    const wire = this.#encoder;
    const written = failure ? wire.wholeFailure(failure) : wire.whole(saidBy(body, this.#toolCallIds), end);
    const text = JSON.stringify(written);
    return { status: failure ? 500 : 200, text: large === undefined ? text : withoutMarks(text, large).toString() };
  }

  /** Whether the provider that was asked last speaks the wire; undefined if no provider of the model does. */
  get #isNative(): boolean | undefined {
    return this.#startedCall.about.sent.isNative;
  }

  get #encoder(): WireEncoder {
    return (this.#wire ??= this.#options.encoder(this.#startedCall));
  }

  get #toolCallIds(): ToolCallIds {
    return (this.#ids ??= createToolCallIds(this.#options.idOf));
  }

  #began(): WireEncoder {
    const wire = this.#encoder;
    if (!this.#begun) wire.begin();
    this.#begun = true;
    return wire;
  }

  #write(event: CallEvent, wire: WireEncoder): void {
    switch (event.type) {
      case 'text-delta': {
        // An agent may give an empty text, which is no delta on these wires.
        const texts = event.json.includes('') ? event.json.filter((text) => text !== '') : event.json;
        return texts.length === 0 ? undefined : wire.text(texts);
      }
      case 'reasoning-delta':
        if (event.member !== undefined) wire.members?.({ [event.member]: textOf(event) });
        for (const json of event.json) wire.thinking(json);
        return;
      case 'reasoning-members':
        return wire.members?.(event.members);
      case 'citations':
        return wire.citations?.(event.cited);
      case 'tool-input-start':
        return wire.call(event.index, event.id, event.name);
      case 'tool-input-delta':
        for (const json of event.json) wire.arguments(event.index, json);
        return;
      case 'file':
        return wire.file ? wire.file(event.file) : wire.text([jsonInside(imageText(event.file))]);
      case 'data':
        return wire.text([jsonInside(JSON.stringify(event.data) ?? 'null')]);
      case 'progress':
        return wire.ping();
      case 'raw': {
        const events: CallEvent[] = [];
        decodeChunk(event.chunk, this.#toolCallIds, events);
        for (const one of events) this.#write(one, wire);
      }
    }
  }
}

const FAILED = { finish: 'error', stopSequence: null, usage: null, tollgate: undefined } as const;

/**
 * The bytes of a text with its large strings. They are in one piece, because a response is kept as the end of its reply
 * has it.
 */
const withoutMarks = (text: string, large: LargeStrings | undefined): Buffer =>
  large === undefined ? Buffer.from(text) : Buffer.concat(large.piecesOf(text));

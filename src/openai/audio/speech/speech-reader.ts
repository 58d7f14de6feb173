import { BOUNDS, createEventReader, EventError, foreignObject, isObject } from '#wire';
import {
  contentTypeOf,
  failedByItsOwnWords,
  isError,
  HeadReader,
  lastObjectInRest,
  malformed,
  parseReplyObject,
  tooLarge,
} from '#wire/replies';
import { chargeOfCut, type Cut, cutReply, type ReplyEnd, type ReplyReader, undeliveredEnd } from '#call';
import type { Offer } from '#catalog';
import { type SpeechBound, type SpeechSize, speechUsed } from './speech-use.ts';

export interface SpeechResult {
  /** The usage for the client, without its cost. */
  readonly usage: Readonly<Record<string, unknown>>;
}

interface SpeechReaderContext {
  readonly size: SpeechSize;
  readonly bound: SpeechBound;
  readonly offer: Offer;
  readonly replyBytesMax: number;
}

/** A reply that is no sound is read this far, for its error. */
const ERROR_BYTES_MAX = 64 * 1024;

/** Reads a reply with speech: the sound itself, or events with its parts. Its pieces are the bytes of the sound. */
export function createSpeechReader(context: SpeechReaderContext): ReplyReader<SpeechResult> {
  return new SpeechReader(context);
}

class SpeechReader extends HeadReader implements ReplyReader<SpeechResult> {
  readonly storedBytes = undefined;
  finished = false;
  readonly #context: SpeechReaderContext;
  #form: 'sound' | 'events' | 'text' = 'sound';
  readonly #events = createEventReader({ bytesMax: BOUNDS.speechEvent.bytesMax });
  readonly #text: Uint8Array[] = [];
  #received = 0;
  #bytes = 0;
  #claim: Readonly<Record<string, unknown>> | null = null;

  constructor(context: SpeechReaderContext) {
    super();
    this.#context = context;
  }

  override head(status: number, headers: Parameters<HeadReader['head']>[1]): void {
    super.head(status, headers);
    const type = contentTypeOf(headers);
    if (type.startsWith('text/event-stream')) this.#form = 'events';
    else if (/^(?:text\/|application\/(?:[\w.-]+\+)?json)/.test(type)) this.#form = 'text';
  }

  data(arrived: readonly Uint8Array[]): Uint8Array | null {
    const { replyBytesMax } = this.#context;
    const pieces: Uint8Array[] = [];
    for (const chunk of arrived) {
      this.#received += chunk.byteLength;
      if (this.#form === 'sound') pieces.push(chunk);
      else if (this.#form === 'events') pieces.push(...this.#soundIn(chunk));
      else if (this.#received <= ERROR_BYTES_MAX) this.#text.push(chunk);
    }
    if (this.#received > replyBytesMax) throw tooLarge(`its reply is larger than ${replyBytesMax} bytes`);
    for (const piece of pieces) this.#bytes += piece.byteLength;
    return pieces.length === 0 ? null : pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
  }

  end(): ReturnType<ReplyReader<SpeechResult>['end']> {
    if (this.#form === 'text') throw errorIn(Buffer.concat(this.#text));
    const rest = this.#form === 'events' && !this.finished ? this.#rest() : null;
    if (this.#bytes === 0) throw malformed('its reply has no sound');
    return { ...this.#endOf(null), rest };
  }

  cut(cut: Cut): ReplyEnd<SpeechResult> {
    if (this.#form === 'events') this.#claim ??= lastObjectInRest(cut.rest, 'usage');
    const charge = chargeOfCut(cut, { came: this.#bytes > 0, reported: this.#claim !== null });
    return charge === 'nothing' ? undeliveredEnd(cut, null, { usage: {} }) : this.#endOf(cut);
  }

  #endOf(cut: Cut | null): ReplyEnd<SpeechResult> {
    const { size, bound, offer } = this.#context;
    const came = { bytes: this.#bytes, whole: cut === null, claim: this.#claim };
    const { shownUsage, ...used } = speechUsed(size, bound, offer, came);
    return {
      ...used,
      outcome: cut === null ? 'complete' : 'cut',
      finishReason: cut?.reason ?? 'stop',
      ...(cut === null ? {} : { cut: cutReply(cut, this.#bytes > 0 ? 'partly' : 'nothing') }),
      result: { usage: shownUsage },
    };
  }

  /** A last event without a blank line. */
  #rest(): Uint8Array | null {
    const pieces = this.#events.end().flatMap(({ data }) => this.#take(data));
    if (!this.finished) throw malformed('its stream ended without speech.audio.done');
    for (const piece of pieces) this.#bytes += piece.byteLength;
    return pieces.length === 0 ? null : Buffer.concat(pieces);
  }

  #soundIn(chunk: Uint8Array): readonly Uint8Array[] {
    if (this.finished) return [];
    try {
      return this.#events.push(chunk).flatMap(({ data }) => this.#take(data));
    } catch (error) {
      if (error instanceof EventError) throw malformed(error.message, error);
      throw error;
    }
  }

  #take(data: string): readonly Uint8Array[] {
    if (data === '' || data === '[DONE]' || this.finished) return [];
    const event = parseReplyObject(Buffer.from(data), BOUNDS.speechEvent);
    const { type, audio, usage, error } = event;
    if (type === 'error' || isError(error)) throw failedByItsOwnWords(error ?? event);
    if (type === 'speech.audio.done') {
      this.finished = true;
      this.#claim = isObject(usage) ? usage : null;
      return [];
    }
    return type === 'speech.audio.delta' && typeof audio === 'string' ? [Buffer.from(audio, 'base64')] : [];
  }
}

function errorIn(bytes: Buffer) {
  const reply = foreignObject(bytes, BOUNDS.speechEvent);
  return isError(reply?.['error'])
    ? failedByItsOwnWords(reply!['error'])
    : malformed('its reply is text and not sound');
}

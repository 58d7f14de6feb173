import { BOUNDS, createEventReader, EventError, isObject, OWN_TURN_BYTES, type SseEvent } from '#wire';
import {
  contentTypeOf,
  createReplyBytes,
  failedByItsOwnWords,
  isError,
  HeadReader,
  lastObjectIn,
  malformed,
  parseReplyObject,
  readReplyObject,
  tooLarge,
} from '#wire/replies';
import { chargeOfCut, type Cut, cutReply, type ReplyEnd, type ReplyReader, undeliveredEnd } from '#call';
import type { Offer } from '#catalog';
import { eventOf } from '../write-stream.ts';
import { type TranscriptFormat, TRANSCRIPT_TYPES } from './transcription-schema.ts';
import { type TranscriptClaim, transcriptionUsed, type UploadSize } from './transcription-use.ts';

export interface TranscriptionResult {
  /** The JSON of the reply, or of the last event of a stream; the bytes of a transcript in another format. */
  readonly transcript: Readonly<Record<string, unknown>> | Buffer;
  /** The usage for the client, without its cost. */
  readonly usage: Readonly<Record<string, unknown>>;
}

interface TranscriptionReaderContext {
  readonly size: UploadSize;
  readonly format: TranscriptFormat;
  readonly stream: boolean;
  readonly offer: Offer;
  readonly replyBytesMax: number;
}

/**
 * Reads a reply with a transcript, in one piece or as events. Its pieces are events for the client, and nothing if the
 * client does not stream. A reply in one piece becomes events for a client that streams, because some models ignore
 * `stream`.
 */
export function createTranscriptionReader(context: TranscriptionReaderContext): ReplyReader<TranscriptionResult> {
  return new TranscriptionReader(context);
}

class TranscriptionReader extends HeadReader implements ReplyReader<TranscriptionResult> {
  finished = false;
  readonly #context: TranscriptionReaderContext;
  readonly #bytesMax: number;
  #form: 'events' | 'json' | 'text' = 'json';
  #bytes: ReturnType<typeof createReplyBytes>;
  #whole: Buffer | null = null;
  readonly #events: ReturnType<typeof createEventReader>;
  #received = 0;
  /** Bytes of the words that were given out in events. */
  #words = 0;
  #done: Readonly<Record<string, unknown>> | null = null;

  constructor(context: TranscriptionReaderContext) {
    super();
    this.#context = context;
    this.#bytesMax = Math.min(context.replyBytesMax, BOUNDS.transcript.bytesMax);
    this.#bytes = createReplyBytes(null, this.#bytesMax);
    this.#events = createEventReader({ bytesMax: this.#bytesMax });
  }

  get storedBytes(): number | undefined {
    return this.#form === 'events' ? undefined : this.#bytes.length;
  }

  override head(status: number, headers: Parameters<HeadReader['head']>[1]): void {
    super.head(status, headers);
    const type = contentTypeOf(headers);
    const { format, stream } = this.#context;
    if (type.startsWith('text/event-stream')) {
      if (status < 400 && !stream) throw malformed('it streamed its reply, but the request did not ask for a stream');
      this.#form = 'events';
    } else if (TRANSCRIPT_TYPES[format] !== null && !type.includes('json')) this.#form = 'text';
  }

  data(arrived: readonly Uint8Array[]): Uint8Array | null {
    const chunks: Buffer[] = [];
    for (const chunk of arrived) {
      this.#received += chunk.byteLength;
      if (this.#form === 'events') chunks.push(...this.#eventsIn(chunk));
      else this.#bytes.push(chunk);
    }
    if (this.#received > this.#bytesMax) throw tooLarge(`its reply is larger than ${this.#bytesMax} bytes`);
    return chunks.length === 0 ? null : Buffer.concat(chunks);
  }

  endElsewhere(): ReturnType<NonNullable<ReplyReader<TranscriptionResult>['endElsewhere']>> {
    if (this.#form !== 'json' || this.#bytes.length <= OWN_TURN_BYTES) return null;
    return readReplyObject(this.#takeChunks(), BOUNDS.transcript).then((reply) => this.#endOfWhole(reply));
  }

  end(): ReturnType<ReplyReader<TranscriptionResult>['end']> {
    if (this.#form === 'events') return this.#endOfEvents();
    const bytes = this.#takeChunks();
    // A transcript of silence is empty.
    if (bytes.byteLength === 0 && this.#form !== 'text') throw malformed('its reply is empty');
    return this.#endOfWhole(this.#form === 'json' ? parseReplyObject(bytes, BOUNDS.transcript) : bytes);
  }

  #endOfWhole(transcript: TranscriptionResult['transcript']): ReturnType<ReplyReader<TranscriptionResult>['end']> {
    const { format, stream } = this.#context;
    if (!Buffer.isBuffer(transcript)) {
      if (isError(transcript['error'])) throw failedByItsOwnWords(transcript['error']);
      if (typeof transcript['text'] !== 'string') throw malformed('its reply has no text');
    }
    const end = this.#endOf(claimOf(transcript, this.#received, this.#form === 'json'), transcript, null);
    if (!stream) return Buffer.isBuffer(transcript) || TRANSCRIPT_TYPES[format] === null ? end : asText(end, format);
    const text = Buffer.isBuffer(transcript) ? transcript.toString() : (transcript['text'] as string);
    const rest = eventOf({ type: 'transcript.text.delta', delta: text });
    return { ...end, rest, result: { ...end.result, transcript: { type: 'transcript.text.done', text } } };
  }

  /** A transcript in one piece is useless if it is cut. */
  cut(cut: Cut): ReplyEnd<TranscriptionResult> {
    const usage = this.#form === 'text' ? null : lastObjectIn(this.#takeChunks(), 'usage', cut.rest);
    const came = this.#words > 0;
    const charge = chargeOfCut(cut, { came, reported: usage !== null });
    const claim = { usage, duration: null, bytes: this.#words, mayClaim: false };
    return charge === 'nothing'
      ? undeliveredEnd(cut, null, { transcript: {}, usage: {} })
      : this.#endOf(claim, {}, cut);
  }

  #takeChunks(): Buffer {
    return (this.#whole ??= wholeOf(this.#bytes.take()));
  }

  #endOf(
    claim: TranscriptClaim,
    transcript: TranscriptionResult['transcript'],
    cut: Cut | null,
  ): ReplyEnd<TranscriptionResult> {
    const { size, offer, stream } = this.#context;
    const { shownUsage, ...used } = transcriptionUsed(size, offer, claim);
    return {
      ...used,
      outcome: cut === null ? 'complete' : 'cut',
      finishReason: cut?.reason ?? 'stop',
      ...(cut === null ? {} : { cut: cutReply(cut, stream && this.#words > 0 ? 'partly' : 'nothing') }),
      result: { transcript, usage: shownUsage },
    };
  }

  #endOfEvents(): ReturnType<ReplyReader<TranscriptionResult>['end']> {
    const rest = this.#done === null ? this.#events.end().flatMap((event) => this.#take(event)) : [];
    const done = this.#done;
    if (done === null) throw malformed('its stream ended without transcript.text.done');
    const text = done['text'];
    const bytes = Math.max(this.#words, typeof text === 'string' ? Buffer.byteLength(text) : 0);
    return {
      ...this.#endOf(claimOf(done, bytes, true), done, null),
      rest: rest.length === 0 ? null : Buffer.concat(rest),
    };
  }

  #eventsIn(chunk: Uint8Array): readonly Buffer[] {
    if (this.finished) return [];
    try {
      return this.#events.push(chunk).flatMap((event) => this.#take(event));
    } catch (error) {
      if (error instanceof EventError) throw malformed(error.message, error);
      throw error;
    }
  }

  /** The bytes for the client; none for the last event, which is held, and for events that are not known. */
  #take({ data }: SseEvent): readonly Buffer[] {
    if (data === '' || data === '[DONE]' || this.finished) return [];
    const event = parseReplyObject(Buffer.from(data), BOUNDS.transcriptEvent);
    const { type, delta, text, error } = event;
    if (type === 'error' || isError(error)) throw failedByItsOwnWords(error ?? event);
    if (type === 'transcript.text.done') {
      this.finished = true;
      this.#done = event;
      return [];
    }
    if (type !== 'transcript.text.delta' && type !== 'transcript.text.segment') return [];
    for (const words of [delta, text]) if (typeof words === 'string') this.#words += Buffer.byteLength(words);
    return [Buffer.from(`data: ${data.replaceAll(/[\r\n]+/g, ' ')}\n\n`)];
  }
}

function claimOf(transcript: TranscriptionResult['transcript'], bytes: number, mayClaim: boolean): TranscriptClaim {
  if (Buffer.isBuffer(transcript)) return { usage: null, duration: null, bytes, mayClaim };
  const { usage, duration } = transcript;
  return { usage: isObject(usage) ? usage : null, duration, bytes, mayClaim };
}

/** A provider that answers JSON for a transcript in a format of text. Its text may be the document itself. */
function asText(end: ReplyEnd<TranscriptionResult>, format: TranscriptFormat): ReplyEnd<TranscriptionResult> {
  const { text, segments } = end.result.transcript as { readonly text: string; readonly segments?: unknown };
  const isDocument = format === 'text' || text.trim() === '' || text.includes('-->');
  const transcript = Buffer.from(isDocument ? text : subtitlesOf(segments, format === 'vtt'));
  return { ...end, result: { ...end.result, transcript } };
}

/** Subtitles of the segments of a `verbose_json`. Words without their times make no subtitles. */
function subtitlesOf(segments: unknown, isVtt: boolean): string {
  if (!Array.isArray(segments) || segments.length === 0) throw malformed('its reply has no times for subtitles');
  const time = (seconds: unknown): string => {
    if (typeof seconds !== 'number' || !(seconds >= 0 && seconds < DAY_S))
      throw malformed('its reply has a segment without a time');
    const text = new Date(Math.round(seconds * 1_000)).toISOString().slice(11, 23);
    return isVtt ? text : text.replace('.', ',');
  };
  const cues = segments.map((segment: unknown, at) => {
    const { start, end, text } = isObject(segment) ? segment : {};
    if (typeof text !== 'string') throw malformed('its reply has a segment without a text');
    // An empty line would end the cue.
    const words = text
      .split(/[\r\n]/)
      .map((line) => line.trim())
      .filter((line) => line !== '')
      .join('\n');
    return `${isVtt ? '' : `${at + 1}\n`}${time(start)} --> ${time(end)}\n${words}\n`;
  });
  return (isVtt ? 'WEBVTT\n\n' : '') + cues.join('\n');
}
const DAY_S = 86_400;

function wholeOf(work: Generator<void, Buffer, undefined>): Buffer {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
  }
}

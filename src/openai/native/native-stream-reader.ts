import { type JsonLimits, UpstreamFailure } from '#wire';
import { checkHead, contentTypeOf, malformed, retryAfterOf, toFailure } from '#wire/replies';
import type { ReplyReader } from '#gateway';
import { createByteOutput } from '../stream/byte-output.ts';
import { runDiscountOf } from '../caps/output-bound.ts';
import { createOutputTally, roomOf } from '../stream/output-tally.ts';
import { joined } from '../stream/joined.ts';
import { failByName, parseChunk } from '../stream/parse-chunk.ts';
import { createSseScanner, SseError } from '../stream/sse.ts';
import { checkWireBytes, lineTooLong } from '../stream/stream-too-large.ts';
import type { ReplyContext } from '../reply/chat-end.ts';
import { nativeCut, nativeEnd, nativeOverCap, type NativeProduced } from './native-end.ts';
import { createNativeForms } from './native-forms.ts';
import { bytesOfTexts, eventText, type NativeSpeech } from './native-speech.ts';

/** The last event of a response repeats the whole response, and the request. */
const EVENT_BYTES_MAX = 8 * 1024 * 1024;
const LIMITS: JsonLimits = { jsonDepthMax: 128, jsonKeysMax: 100_000, jsonElementsMax: 1_000_000, repairText: true };

/**
 * Reads a stream in a wire that the client speaks too. Events go out as they came, except for the name of the model.
 * The last events are held until `end`, which adds the cost.
 */
export function createNativeStreamReader(context: ReplyContext, speech: NativeSpeech): ReplyReader {
  const output = createByteOutput();
  const tally = createOutputTally(context.budget);
  const forms = createNativeForms(tally, output);
  const scanner = createSseScanner(readEvent, EVENT_BYTES_MAX, (bytes, start, end) =>
    forms.take(bytes, start, end, true),
  );
  let received = 0;
  let events = 0;
  let failed = false;
  let overCap = false;
  let retryAfterS: number | undefined;

  /** Returns false after the last event. */
  function readEvent(bytes: Buffer, start: number, end: number, refused: boolean, isError: boolean): boolean {
    if (isError) failByName(bytes.subarray(start, end), bytes.toString('utf8', start, end));
    return (!refused && forms.take(bytes, start, end, false) === end) || parsed(bytes, start, end);
  }

  function parsed(bytes: Buffer, start: number, end: number): boolean {
    const text = bytes.toString('utf8', start, end);
    // Some servers end every stream with the `[DONE]` of chat.
    if (text.trim() === '[DONE]') return true;
    const event = parseChunk(bytes.subarray(start, end), text, LIMITS);
    const { type } = event;
    if (typeof type !== 'string' || !TYPE.test(type)) throw malformed('its stream has an event without a type');
    const given = speech.take(type, event, text);
    events++;
    const size = speech.sizeOf(type, event);
    tally.bytes += bytesOfTexts(size.texts);
    tally.otherBytes += size.other;
    tally.discount += runDiscountOf(size.texts);
    overCap = roomOf(tally) < 0;
    if (overCap) return false;
    if (given === null) return !speech.isOver;
    const line = oneLine(given);
    output.writeText(eventText(type, line));
    // Bytes of a known form go out unchanged, so they have to be one line.
    if (size.texts.length > 0 && line === given) forms.learn(type, given);
    return true;
  }

  /** Runs `read`. Throws UpstreamFailure if the stream is broken. */
  function reading(read: () => void): void {
    try {
      read();
    } catch (error) {
      const failure = error instanceof SseError ? lineTooLong(error, tally) : error;
      failed = !(failure instanceof UpstreamFailure && failure.tooLarge);
      throw failure;
    }
  }

  const produced = (): NativeProduced => ({
    speech,
    before: output.take(),
    outputBytes: tally.bytes,
    otherBytes: tally.otherBytes,
    write: (end) => speech.last(end, forms.sequence),
  });

  return {
    get finished() {
      return overCap || speech.isOver;
    },
    head(status, headers) {
      retryAfterS = retryAfterOf(headers['retry-after']);
      checkHead(status, headers);
      if (status < 400 && contentTypeOf(headers).includes('json'))
        throw malformed('it did not stream its reply, but the request asked for a stream');
    },
    failure: (status, body) => toFailure(status, body, retryAfterS),
    data(chunks) {
      if (overCap || speech.isOver) return null;
      const arrived = joined(chunks);
      received += arrived.length;
      output.expected = arrived.length + 64;
      reading(() => scanner.push(arrived));
      checkWireBytes(received, context.replyBytesMax, tally);
      return output.take();
    },
    end() {
      if (!overCap && !speech.isOver) reading(() => scanner.end());
      if (overCap) return nativeOverCap(context, produced());
      if (events === 0) throw malformed('it ended the stream without a reply');
      if (!speech.isOver && speech.finish === null)
        throw malformed('it ended the stream before the reply was complete');
      return nativeEnd(context, produced());
    },
    cut(cut) {
      if (failed) throw malformed('its stream was broken before it was cut');
      return overCap ? nativeOverCap(context, produced()) : nativeCut(context, produced(), cut);
    },
  };
}

/** The type is written into the `event:` line. */
const TYPE = /^[\w.-]{1,128}$/;

/**
 * Writes JSON as one line, because several lines would need a `data:` field each. Outside of its strings a line end is
 * only white space, and a string has none.
 */
const oneLine = (json: string): string => json.replaceAll(/[\n\r]/g, ' ');

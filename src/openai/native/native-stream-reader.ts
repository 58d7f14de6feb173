import { BOUNDS, contentTypeOf, lastObjectInRest, malformed } from '#wire/replies';
import type { Cut, ReplyEnd, ReplyReader } from '#call';
import type { ChatResult, ReplyContext } from '../chat/reply/chat-end.ts';
import { type OutputCounter, roomOf, runDiscountOf } from '../chat/reply/output-bound.ts';
import { endOfString } from '../stream/chunk-forms.ts';
import { type ByteOutput, createByteOutput } from '../stream/chunk-output.ts';
import { type EventForm, eventForm, EventForms, type FoundRun } from '../stream/event-forms.ts';
import { EventStreamReader, parseChunk } from '../stream/event-stream-reader.ts';
import { nativeCut, nativeEnd, nativeOverCap, type NativeProduced } from './native-reply-reader.ts';
import { OutputSize } from './output-size.ts';
import { eventText, type NativeDecoder } from './passthrough.ts';

/**
 * Reads a stream in a wire that the client speaks too. Events go out as they came, except for the name of the model.
 * The last events are held until `end`, which adds the cost.
 */
export function createNativeStreamReader(context: ReplyContext, decoder: NativeDecoder): ReplyReader<ChatResult> {
  return new NativeStreamReader(context, decoder, createByteOutput());
}

class NativeStreamReader extends EventStreamReader<Uint8Array> implements ReplyReader<ChatResult> {
  readonly storedBytes = undefined;
  readonly #decoder: NativeDecoder;
  readonly #output: ByteOutput;
  readonly #forms: NativeForms;
  /** Of one event. */
  readonly #size = new OutputSize();
  #events = 0;
  #overCap = false;

  constructor(context: ReplyContext, decoder: NativeDecoder, output: ByteOutput) {
    super(context, output, BOUNDS.nativeEvent.bytesMax);
    this.#output = output;
    this.#decoder = decoder;
    this.#forms = new NativeForms(this.counter, output);
  }

  get finished(): boolean {
    return this.#overCap || this.#decoder.isOver;
  }

  override head(status: number, headers: Parameters<ReplyReader['head']>[1]): void {
    super.head(status, headers);
    if (status < 400 && contentTypeOf(headers).includes('json'))
      throw malformed('it did not stream its reply, but the request asked for a stream');
  }

  data(chunks: readonly Uint8Array[]): Uint8Array | null {
    return this.read(chunks);
  }

  end(): ReplyEnd<ChatResult> {
    this.readRest();
    if (this.#overCap) return nativeOverCap(this.context, this.#produced());
    if (this.#events === 0) throw malformed('it ended the stream without a reply');
    if (!this.#decoder.isOver && this.#decoder.finish === null)
      throw malformed('it ended the stream before the reply was complete');
    return this.flagged(nativeEnd(this.context, this.#produced()));
  }

  cut(cut: Cut): ReplyEnd<ChatResult> {
    this.refuseBroken();
    const claim = lastObjectInRest(cut.rest, this.#decoder.usageMember);
    if (claim !== null) this.#decoder.takeUsage(claim);
    return this.#overCap
      ? nativeOverCap(this.context, this.#produced())
      : nativeCut(this.context, this.#produced(), cut, true);
  }

  protected takeKnown(bytes: Buffer, start: number, end: number, framed: boolean): number {
    return this.#forms.take(bytes, start, end, framed);
  }

  protected readEvent(bytes: Buffer, start: number, end: number): boolean {
    const text = bytes.toString('utf8', start, end);
    // Some servers end every stream with the `[DONE]` of chat.
    if (text.trim() === '[DONE]') return true;
    const event = parseChunk(bytes.subarray(start, end), text, BOUNDS.nativeEvent);
    const { isUntyped } = this.#decoder;
    const type = isUntyped ? '' : event['type'];
    if (typeof type !== 'string' || (!isUntyped && !TYPE.test(type)))
      throw malformed('its stream has an event without a type');
    const changedText = this.#decoder.take(type, event, text);
    this.#events++;
    this.hasContent ||= !this.#decoder.opens(type, event);
    const size = this.#size;
    size.clear();
    this.#decoder.addSize(type, event, size);
    const counter = this.counter;
    counter.bytes += size.textBytes;
    counter.otherBytes += size.otherBytes;
    counter.pictures += size.pictures;
    counter.soundBytes += size.soundBytes;
    counter.discount += runDiscountOf(size.texts);
    this.#overCap = roomOf(counter) < 0;
    if (this.#overCap) return false;
    if (changedText === null) return !this.#decoder.isOver;
    const line = oneLine(changedText);
    this.#output.writeText(isUntyped ? `data: ${line}\n\n` : eventText(type, line));
    // Bytes of a known form go out unchanged, so they have to be one line. Untyped events have a usage each, which has
    // to be read.
    if (!isUntyped && size.texts.length > 0 && line === changedText) this.#forms.learn(type, changedText);
    return true;
  }

  #produced(): NativeProduced {
    const { bytes, otherBytes, pictures, soundBytes } = this.counter;
    const decoder = this.#decoder;
    const forms = this.#forms;
    return {
      decoder,
      before: this.#output.take(),
      outputBytes: bytes,
      otherBytes,
      pictures,
      soundBytes,
      write: (end) => decoder.last(end, forms.sequence),
    };
  }
}

/** The type is written into the `event:` line. */
const TYPE = /^[\w.-]{1,128}$/;

/**
 * Writes JSON as one line, because several lines would need a `data:` field each. Outside of its strings a line end is
 * only white space, and a string has none.
 */
const oneLine = (json: string): string => json.replaceAll(/[\n\r]/g, ' ');

/** Members whose values differ from event to event. Those in NO_OUTPUT are not output. */
const SLOT = /"(sequence_number)":(?=\d)|"(delta|text|thinking|partial_json|obfuscation)":"/g;
const NO_OUTPUT: ReadonlySet<string> = new Set(['sequence_number', 'obfuscation']);

interface NativeForm extends EventForm {
  /** The line before the data. */
  readonly line: Buffer;
}

/** Delta events in a form that was seen before. They are valid, and pass unchanged. */
class NativeForms {
  /** The last number in the events that passed; null before one. */
  sequence: number | null = null;
  readonly #output: ByteOutput;
  readonly #forms: EventForms<NativeForm>;

  constructor(counter: OutputCounter, output: ByteOutput) {
    this.#output = output;
    this.#forms = new EventForms<NativeForm>(counter, (form, run, bytes, start, framed) =>
      this.#pass(form, run, bytes, start, framed),
    );
  }

  take(bytes: Buffer, start: number, end: number, framed: boolean): number {
    return this.#forms.take(bytes, start, end, framed);
  }

  /** Learns the form of an event that JSON.parse accepts. */
  learn(type: string, text: string): void {
    this.#forms.learn(text, () => formOf(text, `event: ${type}\ndata: `));
  }

  #pass({ line }: NativeForm, run: FoundRun, bytes: Buffer, start: number, framed: boolean): void {
    this.#output.write(line);
    this.#output.write(bytes.subarray(start, run.end));
    if (!framed) this.#output.write(BLANK);
    if (run.numberEnd > 0) this.sequence = Number(bytes.toString('latin1', run.numberStart, run.numberEnd));
  }
}

const BLANK = Buffer.from('\n\n');

/** null for an event without output. */
function formOf(text: string, line: string): NativeForm | null {
  const around: string[] = [];
  const slots: EventForm['slots'][number][] = [];
  let from = 0;
  SLOT.lastIndex = 0;
  for (let match = SLOT.exec(text); match !== null; match = SLOT.exec(text)) {
    const [, number, string] = match;
    const start = SLOT.lastIndex;
    around.push(text.slice(from, start));
    slots.push({ isNumber: number !== undefined, isOutput: !NO_OUTPUT.has((number ?? string)!) });
    from = number === undefined ? endOfString(text, start) : endOfDigits(text, start);
    SLOT.lastIndex = from;
  }
  if (!slots.some(({ isOutput }) => isOutput)) return null;
  return { ...eventForm([...around, text.slice(from)], slots, line, true), line: Buffer.from(line) };
}

function endOfDigits(text: string, from: number): number {
  let i = from;
  while (text[i]! >= '0' && text[i]! <= '9') i++;
  return i;
}

import type { JsonObject } from '#wire';
import type { ReplyPiece } from '#billing/amounts';
import { type CallEvent, type EventBatch, eventBatch, textOf } from '#bridge';
import { decodeChunk, type ToolCallIds } from '../chat/reply/chat-decoder.ts';
import { type EventForm, eventForm, type FoundRun, OUTPUT } from './event-forms.ts';

/**
 * Takes the chunks of a chat stream, in the gateway's form, and gives out what the client gets of them: bytes of the
 * chat wire, events for another wire, or the chunks themselves. `F` is how it writes chunks of a known form.
 */
export interface ChunkOutput<D extends ReplyPiece = ReplyPiece, F = unknown> {
  /** So many bytes of the provider have arrived, which are read before the next take. */
  arrives(bytes: number): void;
  chunk(chunk: JsonObject): void;
  /** Takes what the last chunk has besides the end of the reply. The route writes that end after the settlement. */
  last(chunk: JsonObject): void;
  /**
   * How chunks are written that are like `chunk` except for one string. `place` sets this string. null if such chunks
   * have to be parsed.
   */
  learn(chunk: JsonObject, place: (chunk: JsonObject, value: string) => void): F | null;
  /** Takes chunks of a learnt form, whose varying strings are at the places of `run` in `bytes`. */
  run(form: F, run: FoundRun, bytes: Buffer): void;
  /** Everything since the last take; null for nothing. */
  take(): D | null;
}

const PLACEHOLDER = 'tollgate:the-text-goes-here';

/** The bytes around the varying text of a chunk. */
type ChunkFrame = Pick<EventForm, 'head' | 'parts' | 'between'>;

/** The gateway's id and names are often longer than the provider's. */
const GROWTH = 1.5;

/** Writes chunks as a chat client gets them. Texts of known forms are copied as bytes. */
export class ChunkBytes implements ChunkOutput<Uint8Array, ChunkFrame> {
  readonly #output = createByteOutput();

  arrives(bytes: number): void {
    this.#output.arrives(Math.ceil(bytes * GROWTH));
  }

  chunk(chunk: JsonObject): void {
    this.#output.writeText(`data: ${JSON.stringify(chunk)}\n\n`);
  }

  last(): void {}

  learn(chunk: JsonObject, place: (chunk: JsonObject, value: string) => void): ChunkFrame | null {
    place(chunk, PLACEHOLDER);
    const around = `data: ${JSON.stringify(chunk)}`.split(PLACEHOLDER);
    return around.length === 2 ? eventForm(around, [OUTPUT], '', false) : null;
  }

  run(frame: ChunkFrame, run: FoundRun, bytes: Buffer): void {
    writeTexts(frame, run, bytes, this.#output);
  }

  take(): Uint8Array | null {
    return this.#output.take();
  }
}

type TextEvent = Extract<CallEvent, { readonly json: readonly string[] }>;

/** Collects events. A batch counts all bytes that arrived for it. */
class EventsOutput {
  protected readonly events: CallEvent[] = [];
  #arrived = 0;

  arrives(bytes: number): void {
    this.#arrived += bytes;
  }

  take(): EventBatch | null {
    if (this.events.length === 0) return null;
    const batch = eventBatch(this.events.splice(0), this.#arrived);
    this.#arrived = 0;
    return batch;
  }
}

/** Makes events of chunks, for a client of another wire. */
export class ChunkEvents extends EventsOutput implements ChunkOutput<EventBatch, TextEvent> {
  readonly #ids: ToolCallIds;

  constructor(ids: ToolCallIds) {
    super();
    this.#ids = ids;
  }

  chunk(chunk: JsonObject): void {
    decodeChunk(chunk, this.#ids, this.events);
  }

  last(chunk: JsonObject): void {
    this.chunk(chunk);
  }

  learn(chunk: JsonObject, place: (chunk: JsonObject, value: string) => void): TextEvent | null {
    place(chunk, PLACEHOLDER);
    const events: CallEvent[] = [];
    decodeChunk(chunk, { hear() {}, idOf: this.#ids.idOf }, events);
    const [event] = events;
    if (events.length !== 1 || !('json' in event!) || event.json.length !== 1 || event.json[0] !== PLACEHOLDER)
      return null;
    return event;
  }

  run(event: TextEvent, run: FoundRun, bytes: Buffer): void {
    const json = textsOf(run, bytes);
    if (json.length === 0) return;
    const next = { ...event, json };
    if ('member' in next) this.#ids.hear({ [next.member]: textOf(next) });
    this.events.push(next);
  }
}

/** Gives the chunks themselves, for a reader that changes them and passes them on. Each chunk has to be parsed. */
export class ChunkObjects extends EventsOutput implements ChunkOutput<EventBatch, never> {
  chunk(chunk: JsonObject): void {
    this.events.push({ type: 'raw', chunk });
  }

  last(): void {}

  learn(): null {
    return null;
  }

  run(): void {}
}

/** A character that cannot be inside a JSON string. */
const SEPARATOR = '\n';
const NONE = Buffer.alloc(0);
const BETWEEN: ChunkFrame = { head: NONE, parts: [NONE], between: Buffer.from(SEPARATOR) };

/** The texts of a run, without empty ones. One native call decodes all of them. */
function textsOf(run: FoundRun, bytes: Buffer): readonly string[] {
  if (run.length === 0) return [];
  if (run.events === 1) return [bytes.toString('utf8', run.places[0], run.places[1])];
  writeTexts(BETWEEN, run, bytes, texts);
  const known = texts.take()!.toString().split(SEPARATOR);
  return known.includes('') ? known.filter((text) => text !== '') : known;
}

/** Texts up to this length are copied byte by byte. */
const SHORT_TEXT_BYTES = 32;

/** Writes the texts of a run with bytes around them. */
function writeTexts(
  { head, parts: [tail], between }: ChunkFrame,
  { events, places, length }: FoundRun,
  bytes: Buffer,
  output: ByteOutput,
): void {
  const target = output.reserve(head.length + length + (events - 1) * between.length + tail!.length);
  let to = output.length;
  target.set(head, to);
  to += head.length;
  for (let i = 0; i < events; i++) {
    if (i > 0) {
      target.set(between, to);
      to += between.length;
    }
    const end = places[2 * i + 1]!;
    let from = places[2 * i]!;
    if (end - from > SHORT_TEXT_BYTES) to += bytes.copy(target, to, from, end);
    else while (from < end) target[to++] = bytes[from++]!;
  }
  target.set(tail!, to);
  output.length = to + tail!.length;
}

export interface ByteOutput {
  length: number;
  /** So many bytes are read before the next take. The output is about as long, so its buffer is allocated once. */
  arrives(bytes: number): void;
  /** The buffer, with room for `bytes` more after `length`. */
  reserve(bytes: number): Buffer;
  write(bytes: Buffer): void;
  writeText(text: string): void;
  /** The bytes since the last take; null for none. */
  take(): Buffer | null;
}

export function createByteOutput(): ByteOutput {
  let buffer: Buffer | null = null;
  let expected = 0;
  return {
    length: 0,
    arrives(bytes) {
      expected = bytes + 64;
    },
    reserve(bytes) {
      const needed = this.length + bytes;
      if (buffer === null) buffer = Buffer.allocUnsafe(Math.max(needed, expected));
      else if (buffer.length < needed) {
        const grown = Buffer.allocUnsafe(Math.max(needed, buffer.length * 2));
        buffer.copy(grown, 0, 0, this.length);
        buffer = grown;
      }
      return buffer;
    },
    write(bytes) {
      this.reserve(bytes.length).set(bytes, this.length);
      this.length += bytes.length;
    },
    writeText(text) {
      const bytes = Buffer.byteLength(text);
      this.length += this.reserve(bytes).write(text, this.length);
    },
    take() {
      if (buffer === null || this.length === 0) return null;
      const written = buffer.subarray(0, this.length);
      buffer = null;
      this.length = 0;
      return written;
    },
  };
}

/** Shared, because a text is taken before the next one is written. */
const texts = createByteOutput();

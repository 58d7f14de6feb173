import { OWN_TURN_BYTES, type Bound } from '#wire';
import { lastObjectIn, parseReplyObject, readReplyObject, tooLarge, WholeHeadReader } from '#wire/replies';
import type { ReplyEnd } from '#call';

/** Reads a reply that is a JSON object in one piece. A large one is parsed over several turns of the event loop. */
export abstract class WholeJsonReader<R> extends WholeHeadReader {
  storedBytes = 0;
  readonly #bound: Bound;
  readonly #bytesMax: number;
  readonly #chunks: Uint8Array[] = [];

  constructor(bound: Bound, replyBytesMax: number) {
    super();
    this.#bound = bound;
    this.#bytesMax = Math.min(replyBytesMax, bound.bytesMax ?? Infinity);
  }

  data(arrived: readonly Uint8Array[]): null {
    for (const chunk of arrived) this.storedBytes += chunk.byteLength;
    this.#chunks.push(...arrived);
    if (this.storedBytes > this.#bytesMax) throw tooLarge(`its reply is larger than ${this.#bytesMax} bytes`);
    return null;
  }

  /**
   * A member of a reply that is given up, such as its usage, with this name; absent if it is not found. `rest`: see
   * `Cut`.
   */
  protected parsedObject(name: string, rest?: Buffer): Readonly<Record<string, unknown>> {
    const value = lastObjectIn(Buffer.concat(this.#chunks), name, rest);
    return value === null ? {} : { [name]: value };
  }

  end(): ReplyEnd<R> {
    return this.endOf(parseReplyObject(Buffer.concat(this.#chunks), this.#bound));
  }

  endElsewhere(): Promise<ReplyEnd<R>> | null {
    if (this.storedBytes <= OWN_TURN_BYTES) return null;
    return readReplyObject(Buffer.concat(this.#chunks), this.#bound).then((reply) => this.endOf(reply));
  }

  /** Throws UpstreamFailure. */
  protected abstract endOf(reply: Readonly<Record<string, unknown>>): ReplyEnd<R>;
}

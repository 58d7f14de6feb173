import { isObject } from '#wire';
import { lastObjectIn, malformed, tooLarge, WholeHeadReader } from '#wire/replies';

/** Reads a reply that is a small JSON object in one piece. */
export abstract class WholeJsonReader extends WholeHeadReader {
  kept = 0;
  readonly #bytesMax: number;
  readonly #chunks: Uint8Array[] = [];

  constructor(bytesMax: number) {
    super();
    this.#bytesMax = bytesMax;
  }

  data(arrived: readonly Uint8Array[]): null {
    for (const chunk of arrived) this.kept += chunk.byteLength;
    this.#chunks.push(...arrived);
    if (this.kept > this.#bytesMax) throw tooLarge(`its reply is larger than ${this.#bytesMax} bytes`);
    return null;
  }

  /**
   * A member of a reply that is given up, such as its usage, with this name; absent if it is not found. `rest`: see
   * `Cut`.
   */
  protected found(name: string, rest?: Buffer): Readonly<Record<string, unknown>> {
    const value = lastObjectIn(Buffer.concat(this.#chunks), name, rest);
    return value === null ? {} : { [name]: value };
  }

  /** The reply. Throws UpstreamFailure if it is no JSON object. */
  protected parsed(): Readonly<Record<string, unknown>> {
    let reply: unknown;
    try {
      reply = JSON.parse(Buffer.concat(this.#chunks).toString());
    } catch (error) {
      throw malformed('its reply is not valid JSON', error);
    }
    if (!isObject(reply)) throw malformed('its reply is not a JSON object');
    return reply;
  }
}

/** An allowance for the special tokens around an item or a tool call. */
const FRAME_BYTES = 32;

export class OutputSize {
  /** Its texts, to which the cap applies. None is empty. */
  readonly texts: string[] = [];
  otherBytes = 0;
  pictures = 0;
  soundBytes = 0;

  /** Adds a text. Any other value has no size. */
  text(value: unknown): void {
    if (typeof value === 'string' && value !== '') this.texts.push(value);
  }

  /** Adds the JSON of a value as other output. */
  json(value: unknown): void {
    if (value !== undefined) this.otherBytes += Buffer.byteLength(JSON.stringify(value));
  }

  /** Adds a text as other output, such as one that is encrypted. */
  sealed(value: unknown): void {
    if (typeof value === 'string') this.otherBytes += Buffer.byteLength(value);
  }

  frame(): void {
    this.otherBytes += FRAME_BYTES;
  }

  get isEmpty(): boolean {
    return this.texts.length === 0 && this.otherBytes === 0;
  }

  get textBytes(): number {
    let bytes = 0;
    for (const text of this.texts) bytes += Buffer.byteLength(text);
    return bytes;
  }

  clear(): void {
    this.texts.length = 0;
    this.otherBytes = 0;
    this.pictures = 0;
    this.soundBytes = 0;
  }
}

/** The code points that NFKC or case folding changes. NFC alone changes no other that it makes longer. */
const CHANGES = /\p{Changes_When_NFKC_Casefolded}/u;
/** A mark such as a dot below can take the place of the marks of the letter before it, which is then longer. */
const JOINING_MARK = /[\u0300-\u036f]/;
const JOINING_MARK_ADDS = 3;
/** The most that is added for a byte: `\ufdfa` becomes a sentence of 33 bytes. */
const ADDED_MOST = 10;
/** More characters count as if all were longer, so that no text takes more than a few milliseconds. */
const EXACT_CHARACTERS = 1024 * 1024;

/** The bytes that are added for each code point, plus 1; 0 for those that are not known yet. */
const ADDED = new Uint8Array(0x11_00_00);

/**
 * The size of texts for a tokenizer, which makes at most one token of each byte that it gets. Many normalise first
 * (NFC: those of Qwen and Cohere; NFKC: those of T5 and XLM-R; some also write all in small letters), and then some
 * characters are longer.
 */
export class TextSize {
  /** UTF-8 bytes of the texts. */
  bytes = 0;
  /** The most bytes that normalising adds. */
  added = 0;
  #exact = EXACT_CHARACTERS;

  add(text: string): void {
    const bytes = Buffer.byteLength(text);
    this.bytes += bytes;
    if (bytes !== text.length) this.#normalise(text);
  }

  /** Adds to `added` what all texts and keys of a structure add. Their bytes are counted elsewhere. */
  addNormalised(value: unknown): void {
    if (typeof value === 'string') {
      if (Buffer.byteLength(value) !== value.length) this.#normalise(value);
    } else if (Array.isArray(value)) for (const element of value as unknown[]) this.addNormalised(element);
    else if (typeof value === 'object' && value !== null)
      for (const key in value) {
        this.addNormalised(key);
        this.addNormalised((value as Readonly<Record<string, unknown>>)[key]);
      }
  }

  #normalise(text: string): void {
    const end = Math.min(text.length, this.#exact);
    this.#exact -= end;
    for (let at = 0; at < end; at++) {
      let code = text.charCodeAt(at);
      if (code < 0x80) continue;
      if ((code & 0xfc00) === 0xd800) {
        code = text.codePointAt(at)!;
        if (code > 0xffff) at++;
      }
      this.added += (ADDED[code] || measured(code)) - 1;
    }
    if (end < text.length) this.added += ADDED_MOST * Buffer.byteLength(text.slice(end));
  }
}

export function tokenizedBytes(text: string): number {
  const size = new TextSize();
  size.add(text);
  return size.bytes + size.added;
}

function measured(code: number): number {
  const written = String.fromCodePoint(code);
  let added = 0;
  if (JOINING_MARK.test(written)) added = JOINING_MARK_ADDS;
  else if (CHANGES.test(written)) {
    const wide = written.normalize('NFKC');
    const forms = [written.normalize('NFC'), wide, written.toLowerCase(), wide.toLowerCase()];
    added = Math.max(...forms.map((form) => Buffer.byteLength(form))) - Buffer.byteLength(written);
  }
  ADDED[code] = Math.max(0, added) + 1;
  return ADDED[code];
}

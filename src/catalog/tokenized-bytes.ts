/** Added to the entry of a code point that was measured. 0 is not measured yet. */
const MEASURED = 1;
const ADDED = new Uint8Array(0x11_00_00);
/** The code points that NFKC or case folding changes. NFC alone changes no other that it makes longer. */
const CHANGES = /\p{Changes_When_NFKC_Casefolded}/u;
/** A mark such as a dot below can take the place of the marks of the letter before it, which is then longer. */
const JOINING_MARK = /[\u0300-\u036f]/;
const JOINING_MARK_ADDS = 3;

/**
 * The most UTF-8 bytes of `text` that a tokenizer gets, which are the most tokens that it makes. Many tokenizers
 * normalise first (NFC: those of Qwen and Cohere; NFKC: those of T5 and XLM-R; some also write all in small letters),
 * and `\ufdfa` of 3 bytes is a sentence of 33 bytes after it.
 */
export function tokenizedBytes(text: string): number {
  const bytes = Buffer.byteLength(text);
  return bytes === text.length ? bytes : bytes + addedTo(text);
}

/** The bytes that `tokenizedBytes` has more than UTF-8, over all texts and keys of `value`. */
export function addedByNormalising(value: unknown): number {
  if (typeof value === 'string') return tokenizedBytes(value) - Buffer.byteLength(value);
  if (typeof value !== 'object' || value === null) return 0;
  let sum = 0;
  if (Array.isArray(value)) for (const element of value as unknown[]) sum += addedByNormalising(element);
  else
    for (const key in value)
      sum += addedByNormalising(key) + addedByNormalising((value as Readonly<Record<string, unknown>>)[key]);
  return sum;
}

function addedTo(text: string): number {
  let sum = 0;
  for (let at = 0; at < text.length; at++) {
    let code = text.charCodeAt(at);
    if (code < 0x80) continue;
    if ((code & 0xfc00) === 0xd800) {
      code = text.codePointAt(at)!;
      if (code > 0xffff) at++;
    }
    sum += (ADDED[code] || measure(code)) - MEASURED;
  }
  return sum;
}

function measure(code: number): number {
  const written = String.fromCodePoint(code);
  let added = 0;
  if (JOINING_MARK.test(written)) added = JOINING_MARK_ADDS;
  else if (CHANGES.test(written)) {
    const wide = written.normalize('NFKC');
    const forms = [written.normalize('NFC'), wide, written.toLowerCase(), wide.toLowerCase()];
    added = Math.max(...forms.map((form) => Buffer.byteLength(form))) - Buffer.byteLength(written);
  }
  ADDED[code] = Math.max(0, added) + MEASURED;
  return ADDED[code];
}

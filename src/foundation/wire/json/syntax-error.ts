/** The position of an error is not searched in longer texts. */
const PLACED_BYTES_MAX = 1024 * 1024;

/**
 * The reason why a text is not JSON, to follow "The body is not valid JSON: "; null for a blank text. `error` is what
 * JSON.parse threw. Positions are in bytes, and `start` is the number of bytes before the text.
 */
export function syntaxFault(text: string, error: unknown, start = 0): string | null {
  if (text.trim() === '') return null;
  if (text.length > PLACED_BYTES_MAX) return (error as Error).message;
  const at = syntaxErrorAt(text);
  return described(Buffer.from(text.slice(at, at + 2))[0], start + Buffer.byteLength(text.slice(0, at)));
}

/** As syntaxFault, for a fault that was found at `at`. */
export function faultAt(bytes: Buffer, at: number, start: number): string {
  return described(bytes[at], start + at);
}

function described(byte: number | undefined, position: number): string {
  if (byte === undefined) return `it ends too early, at position ${position}`;
  const isShown = byte > 0x20 && byte < 0x7f;
  const label = isShown ? `'${String.fromCharCode(byte)}'` : `byte 0x${byte.toString(16).padStart(2, '0')}`;
  return `unexpected ${label} at position ${position}`;
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /true|false|null/y;
const PLAIN_ESCAPES = '"\\/bfnrt';

type Expected = 'value' | 'first value' | 'key' | 'first key' | 'colon' | 'comma or end';

/**
 * The index of the first character that makes `text` invalid; its length if the text only ends too early. V8 reports
 * the position of some errors only, so the text is scanned again after JSON.parse has failed.
 */
// oxlint-disable-next-line complexity -- the branches are the characters of the grammar
export function syntaxErrorAt(text: string): number {
  const open: string[] = [];
  let i = 0;
  let expects = 'value' as Expected;
  for (;;) {
    while (text[i] === ' ' || text[i] === '\t' || text[i] === '\n' || text[i] === '\r') i++;
    const char = text[i];
    if (char === undefined) return text.length;
    if (expects === 'colon') {
      if (char !== ':') return i;
      expects = 'value';
      i++;
    } else if (expects === 'comma or end') {
      const closing = open.at(-1);
      if (closing === undefined) return i;
      if (char === ',') expects = closing === '}' ? 'key' : 'value';
      else if (char === closing) open.pop();
      else return i;
      i++;
    } else if ((expects === 'first value' && char === ']') || (expects === 'first key' && char === '}')) {
      open.pop();
      expects = 'comma or end';
      i++;
    } else if (char === '"') {
      const end = stringErrorOrEnd(text, i + 1);
      if (end < 0) return -1 - end;
      expects = expects === 'key' || expects === 'first key' ? 'colon' : 'comma or end';
      i = end;
    } else if (expects === 'key' || expects === 'first key') return i;
    else if (char === '{' || char === '[') {
      open.push(char === '{' ? '}' : ']');
      expects = char === '{' ? 'first key' : 'first value';
      i++;
    } else {
      const scalar = char === '-' || (char >= '0' && char <= '9') ? NUMBER : WORD;
      scalar.lastIndex = i;
      if (!scalar.test(text)) return i;
      i = scalar.lastIndex;
      expects = 'comma or end';
    }
  }
}

/** The index after the closing quote, or -1 − the index of the first character that a string must not have. */
function stringErrorOrEnd(text: string, from: number): number {
  for (let i = from; i < text.length; i++) {
    const char = text[i]!;
    if (char === '"') return i + 1;
    if (char < ' ') return -1 - i;
    if (char !== '\\') continue;
    const escape = text[++i];
    if (escape === undefined) break;
    if (escape === 'u' && /^[\da-fA-F]{4}$/.test(text.slice(i + 1, i + 5))) i += 4;
    else if (!PLAIN_ESCAPES.includes(escape)) return -1 - i;
  }
  return -1 - text.length;
}

import type { Produced, ReplyContext } from './chat-end.ts';
import { outputBytesMax } from '../caps/output-bound.ts';
import { firstBytes } from './message-text.ts';

const keysOf = (keys: readonly string[]) => keys.map((key) => ({ key, bytes: Buffer.from(`"${key}":`) }));

/** The keys of a model's text. */
const KEYS = keysOf(['content', 'reasoning', 'reasoning_content', 'refusal', 'arguments']);
/** The same on other wires. */
const NATIVE_KEYS = keysOf(['text', 'thinking', 'refusal', 'arguments']);

/**
 * Reads a native reply that is not streamed and was cut. `said` is its visible text as far as it came. `outputBytes`
 * counts all its output.
 */
export function partialTexts(bytes: Buffer): { readonly said: string; readonly outputBytes: number } {
  let said = '';
  let outputBytes = 0;
  for (const { key, bytes: needle } of NATIVE_KEYS)
    for (let at = bytes.indexOf(needle); at !== -1; at = bytes.indexOf(needle, at + needle.length)) {
      const text = textAt(bytes, at + needle.length);
      outputBytes += Buffer.byteLength(text);
      if (key === 'text') said += text;
    }
  return { said, outputBytes };
}

const USAGE = Buffer.from('"usage":');
const USAGE_BYTES_MAX = 4096;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACES: ReadonlySet<number | undefined> = new Set([0x20, 0x09, 0x0a, 0x0d]);

/**
 * Reads a completion that is not streamed, and that was cut or has more structure than is parsed. Each text, as far
 * as it came, becomes a choice that ended by its length. The claim is read if it came. Keys are found by their
 * bytes. A key inside a text is not taken for a key, because its quotes are escaped.
 */
export function partialReply({ callId, created, service, provider, budget }: ReplyContext, bytes: Buffer): Produced {
  const texts: string[] = [];
  let room = outputBytesMax(budget);
  let outputBytes = 0;
  // Some servers send the same reasoning under both names. It counts once.
  const reasoning = new Set<string>();
  for (const { key, bytes: needle } of KEYS) {
    for (let at = bytes.indexOf(needle); at !== -1; at = bytes.indexOf(needle, at + needle.length)) {
      const text = textAt(bytes, at + needle.length);
      if (key === 'reasoning') reasoning.add(text);
      if (key === 'reasoning_content' && reasoning.has(text)) continue;
      outputBytes += Buffer.byteLength(text);
      if (key !== 'content' || text === '') continue;
      const taken = firstBytes(text, room);
      texts.push(taken);
      room -= Buffer.byteLength(taken);
    }
  }
  const choices = (texts.length > 0 ? texts : ['']).map((content, index) => ({
    index,
    message: { role: 'assistant', content },
    finish_reason: 'length',
  }));
  const body = {
    id: callId,
    object: 'chat.completion',
    created,
    model: service,
    provider,
    system_fingerprint: null,
    choices,
  };
  return {
    body,
    before: null,
    claim: claimIn(bytes),
    outputBytes,
    otherBytes: 0,
    finishReasons: [],
    choices: choices.length,
    malformed: false,
    overCap: false,
  };
}

/** The JSON string that begins here, as far as it came; empty if another value begins here. */
function textAt(bytes: Buffer, from: number): string {
  let start = from;
  while (SPACES.has(bytes[start])) start++;
  if (bytes[start] !== QUOTE) return '';
  start++;
  let end = start;
  for (;;) {
    end = bytes.indexOf(QUOTE, end);
    if (end === -1) break;
    let escapes = 0;
    while (bytes[end - 1 - escapes] === BACKSLASH) escapes++;
    if (escapes % 2 === 0) break;
    end++;
  }
  // A character or an escape that was cut is left out.
  const raw = new TextDecoder().decode(bytes.subarray(start, end === -1 ? bytes.length : end), { stream: end === -1 });
  const text = end === -1 ? withoutBrokenEscape(raw) : raw;
  try {
    return (JSON.parse(`"${text}"`) as string).toWellFormed();
  } catch {
    return text.toWellFormed();
  }
}

/** Removes an incomplete escape at the end: `\\`, `\\u`, `\\u12`. */
function withoutBrokenEscape(text: string): string {
  const digits = /u[0-9a-fA-F]{0,3}$/.exec(text.slice(-4))?.[0].length ?? 0;
  for (const end of [text.length, text.length - digits]) {
    let escapes = 0;
    while (text[end - 1 - escapes] === '\\') escapes++;
    if (escapes % 2 === 1) return text.slice(0, end - 1);
  }
  return text;
}

/** The last `usage` of a reply; undefined if it is missing or incomplete. */
function claimIn(bytes: Buffer): unknown {
  const at = bytes.lastIndexOf(USAGE);
  if (at === -1) return undefined;
  const text = bytes.toString('utf8', at + USAGE.length, at + USAGE.length + USAGE_BYTES_MAX);
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '{') depth++;
    if (text[i] === '}' && --depth === 0) {
      try {
        return JSON.parse(text.slice(0, i + 1));
      } catch {
        return undefined;
      }
    }
  }
  return undefined;
}

type Json = Record<string, unknown>;

/** The members that hold a model's text, under the names that servers use. */
const TEXT_KEYS = ['content', 'reasoning', 'reasoning_content', 'refusal'];
/** Some servers send the same reasoning under both names. It counts once. */
const saidTwice = (key: string, message: Json): boolean =>
  key === 'reasoning_content' && message[key] === message['reasoning'];

/**
 * Members with other output, which has many bytes for its price: sound and pictures in base64, reasoning in a
 * provider's own format.
 */
const OTHER_KEYS = ['audio', 'images', 'reasoning_details'];

/** An allowance for the tokens around a tool call that no reply shows: at most 32, each counted as one byte. */
const CALL_FRAME_BYTES = 32;

/** Bytes of text in a message or a delta, as far as they can be counted. */
export function textBytes(message: Json): number {
  let bytes = 0;
  for (const key of TEXT_KEYS) {
    const value = message[key];
    if (saidTwice(key, message)) continue;
    if (typeof value === 'string') bytes += Buffer.byteLength(value);
    else if (key === 'content' && Array.isArray(value)) bytes += Buffer.byteLength(JSON.stringify(value));
  }
  const calls = message['tool_calls'];
  if (Array.isArray(calls))
    for (const call of calls as unknown[]) bytes += functionBytes((call as Json | null)?.['function']);
  return bytes + functionBytes(message['function_call']);
}

function functionBytes(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const { name, arguments: given } = value as Json;
  return (
    (typeof name === 'string' ? Buffer.byteLength(name) : 0) +
    (typeof given === 'string' ? Buffer.byteLength(given) : 0)
  );
}

/** The bytes of a message or a delta that are output but not text, with the allowance for each tool call. */
export function otherBytes(message: Json): number {
  let bytes = 0;
  for (const key of OTHER_KEYS) {
    const value = message[key];
    if (typeof value === 'object' && value !== null) bytes += Buffer.byteLength(JSON.stringify(value));
  }
  const calls = message['tool_calls'];
  // Only the first delta of a call has a name, so each call counts once.
  if (Array.isArray(calls))
    for (const call of calls as unknown[]) if (nameOf((call as Json | null)?.['function'])) bytes += CALL_FRAME_BYTES;
  return nameOf(message['function_call']) ? bytes + CALL_FRAME_BYTES : bytes;
}

const nameOf = (fn: unknown): unknown => (fn as Json | null | undefined)?.['name'];

/** Every text of a message or a delta. They are searched for runs. */
export function* textsOf(message: Json): Generator<string> {
  for (const key of TEXT_KEYS) {
    const value = message[key];
    if (saidTwice(key, message)) continue;
    if (typeof value === 'string') yield value;
    else if (key === 'content' && Array.isArray(value)) yield JSON.stringify(value);
  }
  const calls = message['tool_calls'];
  for (const call of [...(Array.isArray(calls) ? (calls as unknown[]) : []), { function: message['function_call'] }]) {
    const given = ((call as Json | null)?.['function'] as Json | null | undefined)?.['arguments'];
    if (typeof given === 'string') yield given;
  }
}

/**
 * The beginning of a message: `bytesMax` bytes of its text. Members that could hold the rest in another form are
 * left out.
 */
export function cutMessage(message: Json, bytesMax: number): { readonly message: Json; readonly bytes: number } {
  let left = bytesMax;
  const take = (text: string): string => {
    const taken = firstBytes(text, left);
    left -= Buffer.byteLength(taken);
    return taken;
  };
  const cut: Json = { role: message['role'] ?? 'assistant' };
  for (const key of TEXT_KEYS) {
    const value = message[key];
    if (saidTwice(key, message)) {
      if (value !== undefined) cut[key] = cut['reasoning'];
    } else if (typeof value === 'string') cut[key] = take(value);
    else if (key === 'content') cut[key] = Array.isArray(value) ? take(textOfParts(value)) : null;
  }
  const calls: Json[] = [];
  for (const call of Array.isArray(message['tool_calls']) ? (message['tool_calls'] as (Json | null)[]) : []) {
    const fn = call?.['function'] as Json | null | undefined;
    const { name, arguments: given } = fn ?? {};
    if (typeof name !== 'string' || (left -= Buffer.byteLength(name)) <= 0) break;
    calls.push({
      id: call!['id'],
      type: 'function',
      function: { name, arguments: typeof given === 'string' ? take(given) : '' },
    });
  }
  if (calls.length > 0) cut['tool_calls'] = calls;
  return { message: cut, bytes: bytesMax - Math.max(0, left) };
}

function textOfParts(parts: readonly unknown[]): string {
  return parts
    .map((part) => (part as { readonly text?: unknown } | null)?.text)
    .filter((text) => typeof text === 'string')
    .join('');
}

/** As many whole characters as fit into `bytesMax` bytes. */
export function firstBytes(text: string, bytesMax: number): string {
  if (Buffer.byteLength(text) <= bytesMax) return text;
  const bytes = Buffer.from(text.slice(0, Math.max(0, bytesMax)));
  let end = Math.min(bytes.length, Math.max(0, bytesMax));
  while (end > 0 && end < bytes.length && (bytes[end]! & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}

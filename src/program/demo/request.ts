/** A picture in a prompt, with the facts that the demo mentions in its answer. */
export interface Picture {
  /** The format, such as `PNG`. `image` if the address doesn't show it. */
  readonly kind: string;
  /** Host of the address. null for a data URL. */
  readonly host: string | null;
  /** Size of a data URL's content in bytes. null for an address. */
  readonly bytes: number | null;
}

interface DemoMessage {
  readonly role: string;
  readonly text: string;
  readonly pictures: readonly Picture[];
}

export interface Tool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly parameters: unknown;
}

/** A chat request. Only the fields that the demo uses are checked. */
export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly DemoMessage[];
  readonly stream: boolean;
  readonly n: number;
  readonly maxTokens: number | null;
  readonly stop: readonly string[];
  readonly seed: number;
  readonly tools: readonly Tool[];
  readonly toolChoice: 'auto' | 'none' | 'required' | { readonly name: string };
  readonly parallelToolCalls: boolean;
  /** JSON Schema of the answer. null if the request doesn't ask for JSON. */
  readonly answerSchema: unknown;
  /** Milliseconds between the tokens of a stream. null for the server's default. */
  readonly paceMs: number | null;
  readonly promptTokens: number;
}

/** The request is invalid. It is answered with status 400 and this message. */
export class RequestError extends Error {
  override readonly name = 'RequestError';
  readonly param: string | null;
  constructor(message: string, param: string | null) {
    super(message);
    this.param = param;
  }
}

export type JsonObject = Readonly<Record<string, unknown>>;
const CHOICES_MAX = 16;

/** Parses the body of a chat request. Throws RequestError. */
export function parseChatRequest(body: unknown): ChatRequest {
  if (!isObject(body)) throw new RequestError('The body must be a JSON object.', null);
  const model = body['model'];
  if (typeof model !== 'string') throw new RequestError('model must be a string.', 'model');
  if (!Array.isArray(body['messages']) || body['messages'].length === 0)
    throw new RequestError('messages must be an array with at least one message.', 'messages');
  const messages = body['messages'].map(parseMessage);
  const tools = Array.isArray(body['tools']) ? body['tools'].map(parseTool) : [];
  return {
    model,
    messages,
    stream: body['stream'] === true,
    n: integer(body, 'n', 1, CHOICES_MAX) ?? 1,
    maxTokens:
      integer(body, 'max_completion_tokens', 1, Number.MAX_SAFE_INTEGER) ??
      integer(body, 'max_tokens', 1, Number.MAX_SAFE_INTEGER),
    stop: parseStop(body['stop']),
    seed: integer(body, 'seed', Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER) ?? 0,
    tools,
    toolChoice: parseToolChoice(body['tool_choice'], tools),
    parallelToolCalls: body['parallel_tool_calls'] !== false,
    answerSchema: parseAnswerSchema(body['response_format']),
    paceMs: integer(body, 'pace_ms', 0, 10_000),
    promptTokens: countPrompt(messages, body['tools']),
  };
}

function parseMessage(message: unknown, index: number): DemoMessage {
  if (!isObject(message) || typeof message['role'] !== 'string')
    throw new RequestError(`messages[${index}] must have a role.`, 'messages');
  const content = message['content'];
  if (typeof content === 'string') return { role: message['role'], text: content, pictures: [] };
  const parts = Array.isArray(content) ? content.filter(isObject) : [];
  return {
    role: message['role'],
    text: parts.flatMap((part) => (typeof part['text'] === 'string' ? [part['text']] : [])).join('\n'),
    pictures: parts
      .filter((part) => part['type'] === 'image_url')
      .map((part) => describePicture(isObject(part['image_url']) ? part['image_url']['url'] : part['image_url'])),
  };
}

function describePicture(url: unknown): Picture {
  if (typeof url !== 'string') throw new RequestError('image_url.url must be a string.', 'messages');
  const data = /^data:image\/([\w.+-]+);base64,/.exec(url);
  if (data !== null) {
    const content = url.slice(data[0].length).replace(/=+$/, '');
    return { kind: kindName(data[1]), host: null, bytes: Math.floor((content.length * 3) / 4) };
  }
  if (!URL.canParse(url)) throw new RequestError('image_url.url must be an https address or a data URL.', 'messages');
  const { hostname, pathname } = new URL(url);
  return { kind: kindName(/\.(\w{3,4})$/.exec(pathname)?.[1]), host: hostname, bytes: null };
}

function kindName(type: string | undefined): string {
  const kind = type?.toLowerCase().replace('jpg', 'jpeg').replace('svg+xml', 'svg');
  return kind !== undefined && ['png', 'jpeg', 'webp', 'gif', 'svg', 'avif'].includes(kind)
    ? kind.toUpperCase()
    : 'image';
}

function parseTool(tool: unknown, index: number): Tool {
  const definition = isObject(tool) ? tool['function'] : null;
  if (!isObject(definition) || typeof definition['name'] !== 'string')
    throw new RequestError(`tools[${index}].function.name must be a string.`, 'tools');
  return {
    name: definition['name'],
    description: typeof definition['description'] === 'string' ? definition['description'] : '',
    parameters: definition['parameters'] ?? {},
  };
}

function parseToolChoice(choice: unknown, tools: readonly Tool[]): ChatRequest['toolChoice'] {
  if (choice === undefined || choice === null || choice === 'auto') return 'auto';
  if (choice === 'none' || choice === 'required') return choice;
  const name = isObject(choice) && isObject(choice['function']) ? choice['function']['name'] : undefined;
  if (!tools.some((tool) => tool.name === name))
    throw new RequestError('tool_choice must be none, auto, required or one of the tools.', 'tool_choice');
  return { name: String(name) };
}

function parseStop(stop: unknown): readonly string[] {
  const sequences = typeof stop === 'string' ? [stop] : (stop ?? []);
  if (!Array.isArray(sequences)) throw new RequestError('stop must be a string or an array of strings.', 'stop');
  return sequences.filter((sequence) => typeof sequence === 'string' && sequence !== '').map(String);
}

/** The schema of an answer in JSON of which the request says no more. */
export const ANY_OBJECT = { type: 'object' };

function parseAnswerSchema(format: unknown): unknown {
  if (!isObject(format)) return null;
  if (format['type'] === 'json_object') return ANY_OBJECT;
  return format['type'] === 'json_schema' && isObject(format['json_schema'])
    ? (format['json_schema']['schema'] ?? ANY_OBJECT)
    : null;
}

function countPrompt(messages: readonly DemoMessage[], tools: unknown): number {
  const toolTokens = tools === undefined ? 0 : countTokens(JSON.stringify(tools));
  return messages.reduce(
    (sum, message) => sum + MESSAGE_TOKENS + countTokens(message.text) + message.pictures.length * IMAGE_TOKENS,
    PROMPT_TOKENS + toolTokens,
  );
}

function integer(body: JsonObject, name: string, min: number, max: number): number | null {
  const value = body[name];
  if (value === undefined || value === null) return null;
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < min || value > max)
    throw new RequestError(`${name} must be an integer from ${min} to ${max}.`, name);
  return value;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** At most this many blocks are removed. */
const BLOCKS_MAX = 100;
const OPENING = /<([a-z][a-z_-]{2,40})>/g;

/**
 * Returns what the user wrote, without the blocks that coding agents add, such as `<system-reminder>…` and
 * `<environment_context>…`. Returns the whole text if it consists only of such blocks.
 */
export function ownWords(text: string): string {
  let own = '';
  let from = 0;
  let blocks = 0;
  OPENING.lastIndex = 0;
  for (let match = OPENING.exec(text); match && blocks < BLOCKS_MAX; match = OPENING.exec(text)) {
    blocks++;
    const closing = `</${match[1]!}>`;
    const end = text.indexOf(closing, OPENING.lastIndex);
    if (end < 0) continue;
    own += text.slice(from, match.index);
    from = OPENING.lastIndex = end + closing.length;
  }
  own = (own + text.slice(from)).trim();
  return own === '' ? text : own;
}

// One token is up to six letters or digits, or up to three other visible characters, each with the space before them. A
// run of up to 16 blanks is a token too. No real model counts like this, but anyone can check the count. The tokens
// together are the whole text.
const TOKEN = / ?[\p{L}\p{N}\p{M}]{1,6}| ?[^\s\p{L}\p{N}\p{M}]{1,3}|\s{1,16}/gu;

/** Splits a text into its tokens. Joined, they give the same text. */
export function splitTokens(text: string): string[] {
  return text.match(TOKEN) ?? [];
}

export function countTokens(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at += CHUNK) count += text.slice(at, at + CHUNK).match(TOKEN)?.length ?? 0;
  return count;
}

// A long prompt is counted in chunks of this many characters, so that no array of millions of tokens is made. A token
// across the border of two chunks counts twice.
const CHUNK = 65_536;

/** Tokens that a request has besides its texts: for the prompt, for each message, and for each image. */
const PROMPT_TOKENS = 3;
const MESSAGE_TOKENS = 4;
const IMAGE_TOKENS = 85;

import { type ChatRequest, isObject, ownWords, type Tool } from './request.ts';

interface ToolCall {
  readonly name: string;
  /** JSON text. */
  readonly arguments: string;
}

/**
 * Returns the tool calls for this request: the forced tool, or the tools whose names the user mentions. Returns no
 * calls if the last message is a tool's result.
 */
export function chooseTools(request: ChatRequest): readonly ToolCall[] {
  if (request.tools.length === 0 || request.toolChoice === 'none' || request.messages.at(-1)?.role === 'tool')
    return [];
  const text = ownWords(request.messages.findLast((message) => message.role === 'user')?.text ?? '').slice(0, 4000);
  const { toolChoice } = request;
  const matches =
    typeof toolChoice === 'object'
      ? request.tools.filter((tool) => tool.name === toolChoice.name)
      : request.tools.filter((tool) => isMeant(tool, text));
  const chosen = matches.length === 0 && toolChoice === 'required' ? request.tools.slice(0, 1) : matches;
  return chosen
    .slice(0, request.parallelToolCalls ? undefined : 1)
    .map((tool) => ({ name: tool.name, arguments: JSON.stringify(exampleFor(tool.parameters, text) ?? {}) }));
}

// Words in tool names that don't tell which tool the user means.
const COMMON_WORDS = new Set([
  'get',
  'set',
  'run',
  'the',
  'and',
  'for',
  'tool',
  'call',
  'make',
  'fetch',
  'list',
  'find',
  'lookup',
  'current',
  'function',
]);

/** Tells whether the user means this tool. "what is the weather in Rome?" means `get_current_weather`. */
function isMeant(tool: Tool, phrase: string): boolean {
  const text = phrase.toLowerCase();
  const words = tool.name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u);
  return (
    text.includes(tool.name.toLowerCase()) ||
    words.some((word) => word.length >= 3 && !COMMON_WORDS.has(word) && text.includes(word))
  );
}

const DEPTH_MAX = 8;

/**
 * Makes a plausible value for a JSON Schema, with words and numbers from the user's message. Follows only `$ref`s
 * inside the schema.
 */
export function exampleFor(schema: unknown, text: string): unknown {
  const numbers = text.match(/-?\d+(?:\.\d+)?/g)?.map(Number) ?? [];
  const make = (part: unknown, name: string, depth: number): unknown => {
    if (!isObject(part) || depth > DEPTH_MAX) return null;
    if (typeof part['$ref'] === 'string') return make(lookUp(schema, part['$ref']), name, depth + 1);
    if (Object.hasOwn(part, 'const')) return part['const'];
    if (Array.isArray(part['enum']))
      return part['enum'].find((value) => typeof value === 'string' && mentions(text, value)) ?? part['enum'][0];
    const alternatives = part['anyOf'] ?? part['oneOf'];
    if (Array.isArray(alternatives))
      return make(
        alternatives.find((option) => isObject(option) && option['type'] !== 'null'),
        name,
        depth + 1,
      );
    if (Array.isArray(part['allOf']))
      return Object.assign({}, ...part['allOf'].map((option) => make(option, name, depth + 1)));
    switch (typeOf(part)) {
      case 'object': {
        const properties = isObject(part['properties']) ? part['properties'] : {};
        const required = Array.isArray(part['required']) ? part['required'] : Object.keys(properties);
        const names = Object.keys(properties).filter(
          (key) => required.includes(key) || namesProperty(properties[key], key, text),
        );
        // Clients that ask for a list put it into an object, and several call the list optional there.
        if (names.length === 0) names.push(...Object.keys(properties).filter((key) => listsObjects(properties[key])));
        return Object.fromEntries(names.map((key) => [key, make(properties[key], key, depth + 1)]));
      }
      case 'array':
        return Array.from({ length: Math.min(Math.max(1, limit(part, 'minItems') ?? 1), 8) }, () =>
          make(part['items'], name, depth + 1),
        );
      case 'integer':
      case 'number':
        return exampleNumber(part, numbers);
      case 'boolean':
        return part['default'] ?? !new RegExp(`\\b(no|not|without|off)\\b`, 'i').test(text);
      case 'null':
        return null;
      default:
        return exampleString(part, name, text);
    }
  };
  const listsObjects = (part: unknown): boolean => {
    if (!isObject(part) || typeOf(part) !== 'array' || !isObject(part['items'])) return false;
    const { $ref: reference } = part['items'];
    const item = typeof reference === 'string' ? lookUp(schema, reference) : part['items'];
    return isObject(item) && typeOf(item) === 'object';
  };
  return make(schema, '', 0);
}

function typeOf(schema: Readonly<Record<string, unknown>>): unknown {
  const type = schema['type'];
  if (Array.isArray(type)) return type.find((option) => option !== 'null') ?? 'null';
  return type ?? (schema['properties'] === undefined ? 'string' : 'object');
}

function lookUp(root: unknown, reference: string): unknown {
  if (!reference.startsWith('#')) return null;
  let value = root;
  for (const step of reference.split('/').slice(1))
    value = isObject(value) ? value[step.replaceAll('~1', '/').replaceAll('~0', '~')] : null;
  return value;
}

function exampleNumber(schema: Readonly<Record<string, unknown>>, numbers: number[]): number {
  const min = limit(schema, 'minimum') ?? (limit(schema, 'exclusiveMinimum') ?? -Infinity) + 1;
  const max = limit(schema, 'maximum') ?? (limit(schema, 'exclusiveMaximum') ?? Infinity) - 1;
  const whole = schema['type'] === 'integer';
  const fits = (value: number): boolean => value >= min && value <= max && (!whole || Number.isInteger(value));
  const position = numbers.findIndex(fits);
  // Each number of the message is used once, so "from 3 to 5" fills two properties.
  if (position !== -1) return numbers.splice(position, 1)[0] ?? 1;
  if (typeof schema['default'] === 'number') return schema['default'];
  return fits(1) ? 1 : Number.isFinite(min) ? min : max;
}

function exampleString(schema: Readonly<Record<string, unknown>>, name: string, text: string): string {
  const alike = likeAnExample(schema, text);
  if (alike !== null) return alike;
  if (typeof schema['default'] === 'string') return schema['default'];
  switch (schema['format']) {
    case 'date':
      return /\d{4}-\d{2}-\d{2}/.exec(text)?.[0] ?? '2026-01-31';
    case 'date-time':
      return '2026-01-31T12:00:00Z';
    case 'email':
      return /[\w.+-]+@[\w.-]+\w/.exec(text)?.[0] ?? 'someone@example.com';
    case 'uri':
      return /https?:\/\/\S+/.exec(text)?.[0] ?? 'https://example.com/';
  }
  const quoted = /["“]([^"”]{1,200})["”]/.exec(text)?.[1];
  if (quoted !== undefined) return quoted;
  if (/query|text|prompt|question|message|input|search|content/i.test(name)) return text.slice(0, 200);
  // A place, as in "the weather in New York?": the capitalised words after a preposition. Without those, the last
  // capitalised words that don't begin the message.
  const place =
    /\b(?:in|at|for|from|to|of|about)\s+((?:\p{Lu}[\p{L}'-]*\s?)+)/u.exec(text)?.[1] ??
    [...text.matchAll(/(?<=\s)(?:\p{Lu}[\p{L}'-]+\s?)+/gu)].at(-1)?.[0];
  return place?.trim() ?? (name === '' ? 'example' : `example ${name}`);
}

function limit(schema: Readonly<Record<string, unknown>>, name: string): number | null {
  const value = schema[name];
  return typeof value === 'number' ? value : null;
}

/**
 * Tells whether the message mentions an optional property: by its name, by one of its `enum` values, or in the form of
 * one of its `examples`.
 */
function namesProperty(property: unknown, name: string, text: string): boolean {
  const allowed = isObject(property) && Array.isArray(property['enum']) ? property['enum'] : [];
  return (
    mentions(text, name) ||
    allowed.some((value) => typeof value === 'string' && mentions(text, value)) ||
    likeAnExample(property, text) !== null
  );
}

const EXAMPLES_MAX = 8;
const EXAMPLE_CHARS_MAX = 40;

/**
 * Finds words of the message that have the form of one of the property's `examples`, with other digits. Returns null if
 * there are no such words.
 */
function likeAnExample(property: unknown, text: string): string | null {
  const examples = isObject(property) && Array.isArray(property['examples']) ? property['examples'] : [];
  for (const example of examples.slice(0, EXAMPLES_MAX)) {
    if (typeof example !== 'string' || example.length > EXAMPLE_CHARS_MAX || !/\d/.test(example)) continue;
    const form = example
      .split(/\d+/)
      .map((text) => RegExp.escape(text))
      .join(String.raw`\d{1,9}`);
    const match = new RegExp(`(?<![\\w.])${form}(?![\\w.])`, 'i').exec(text);
    if (match !== null) return match[0];
  }
  return null;
}

function mentions(text: string, word: string): boolean {
  return text.toLowerCase().includes(word.toLowerCase());
}

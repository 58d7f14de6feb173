import { GatewayError, guardStructure, isObject, type JsonLimits, type JsonObject, printable } from '#wire';
import type { Part, TargetRequest } from '#gateway';

interface CallArgumentsOptions {
  readonly limits: JsonLimits;
  /** The input schema of the tool; null if it is unknown. A function, because it is not always needed. */
  readonly schema: () => Promise<JsonObject | null>;
}

/**
 * The arguments for a tool (JSON text), from what a route says to it: its object of arguments, or else the user's last
 * message. That message is one data part, a JSON object, or the text for a tool with a single text argument. `name` is
 * the tool's name, for errors. Rejects with GatewayError `unprocessable` for any other message, and with
 * `invalid_request` if the JSON has more structure than allowed.
 */
export async function callArguments(
  name: string,
  { arguments: given, turns }: TargetRequest,
  { limits, schema }: CallArgumentsOptions,
): Promise<string> {
  if (given !== null) return JSON.stringify(given);
  const parts = turns.at(-1)?.parts ?? [];
  if (parts.some(({ kind }) => kind === 'file'))
    throw unprocessable(`${printable(name)} is a tool and does not accept files: ${AS_JSON}`);
  const data = parts.filter((part) => part.kind === 'data');
  if (data.length === 1 && isObject(data[0]!.data)) return JSON.stringify(data[0]!.data);
  const text = textOf(parts);
  if (isJsonObject(text, limits)) return text;
  const known = await schema();
  if (known === null) throw unprocessable(`The arguments of ${printable(name)} are not known yet: ${AS_JSON}`);
  const filled = text.trim() === '' ? null : onlyText(known);
  if (filled === null) throw unprocessable(`${printable(name)} ${shown(known)}`);
  return JSON.stringify({ [filled]: text });
}

const AS_JSON = 'send its arguments as a JSON object';

const unprocessable = (message: string) => new GatewayError('unprocessable', message, { param: 'arguments' });

const textOf = (parts: readonly Part[]): string =>
  parts.flatMap((part) => (part.kind === 'text' ? [part.text] : [])).join('\n');

function isJsonObject(text: string, limits: JsonLimits): boolean {
  if (!/^\s*\{/.test(text)) return false;
  guardStructure(Buffer.from(text), limits);
  try {
    JSON.parse(text);
    return true;
  } catch {
    // Not JSON after all: an ordinary text may begin with a brace.
    return false;
  }
}

/**
 * The property that a text is for: the only required property, or else the only property. Null if there is no such
 * property, or it does not accept a text.
 */
function onlyText(schema: JsonObject): string | null {
  const properties = propertiesOf(schema);
  const names = Object.keys(properties);
  const required = requiredOf(schema).filter((name) => Object.hasOwn(properties, name));
  const only = required.length === 1 ? required[0]! : names.length === 1 ? names[0]! : null;
  if (only === null || required.length > 1) return null;
  const property = properties[only];
  return isObject(property) && property['type'] === 'string' ? only : null;
}

const propertiesOf = ({ properties }: JsonObject): JsonObject => (isObject(properties) ? properties : {});

const requiredOf = ({ required }: JsonObject): readonly string[] =>
  Array.isArray(required) ? [...new Set(required.filter((name): name is string => typeof name === 'string'))] : [];

/** Most properties that an error shows. */
const SHOWN_MAX = 20;
const SHOWN_CHARS = 64;

/** The arguments that a tool takes, as words for an error. All names and types come from the server. */
function shown(schema: JsonObject): string {
  const properties = Object.entries(propertiesOf(schema));
  if (properties.length === 0) return 'takes no arguments: send {}';
  const required = new Set(requiredOf(schema));
  const list = properties.slice(0, SHOWN_MAX).map(([name, property]) => {
    const type = isObject(property) && typeof property['type'] === 'string' ? property['type'] : 'any';
    return `${printable(JSON.stringify(name), SHOWN_CHARS)}: ${printable(type, SHOWN_CHARS)}${required.has(name) ? ' (required)' : ''}`;
  });
  const more = properties.length > SHOWN_MAX ? `, and ${properties.length - SHOWN_MAX} more` : '';
  return `takes its arguments as a JSON object: {${list.join(', ')}${more}}`;
}

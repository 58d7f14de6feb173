import { isObject, type JsonObject } from '#wire';

/* Marks in a request for what a cache holds longer than the usual five minutes, which costs more. */

/** Members with a mark: those of Anthropic and Bedrock, also as packages and servers that fold names read them. */
const MARK = /^cache_?(?:control|point)$/i;
const TIME = /^ttl$/i;
const USUAL = '5m';
/** Members that are data. Providers do not look for marks in them. */
const DATA: ReadonlySet<string> = new Set(['input', 'input_schema', 'parameters']);

const isMark = (name: string): boolean => (name[0] === 'c' || name[0] === 'C') && MARK.test(name);
const isLonger = (mark: JsonObject): boolean =>
  Object.entries(mark).some(([name, time]) => TIME.test(name) && time !== USUAL && time !== undefined);

/** Whether a value has a mark for another time than the usual one, at any depth. */
export function asksHour(value: unknown): boolean {
  if (Array.isArray(value)) return (value as unknown[]).some(asksHour);
  if (!isObject(value)) return false;
  for (const name in value) {
    const member = value[name];
    if (typeof member !== 'object' || member === null || DATA.has(name)) continue;
    if (isMark(name) && isObject(member) && isLonger(member)) return true;
    if (asksHour(member)) return true;
  }
  return false;
}

/**
 * The value with the usual time in all marks. Returns the same value if nothing changes, and keeps all objects without
 * such a mark, because numbers that a double cannot hold are objects, too.
 */
export const withUsualTimes = <T>(value: T): T => (asksHour(value) ? (usual('', value) as T) : value);

function usual(name: string, value: unknown): unknown {
  if (DATA.has(name)) return value;
  if (Array.isArray(value)) {
    const elements = (value as unknown[]).map((element) => usual('', element));
    return elements.some((element, index) => element !== value[index]) ? elements : value;
  }
  if (!isObject(value)) return value;
  const times = isMark(name) && isLonger(value);
  let changed: Record<string, unknown> | null = null;
  for (const [member, inner] of Object.entries(value)) {
    const usualValue = times && TIME.test(member) ? undefined : usual(member, inner);
    if (usualValue === inner) continue;
    changed ??= { ...value };
    if (usualValue === undefined) delete changed[member];
    else changed[member] = usualValue;
  }
  return changed ?? value;
}

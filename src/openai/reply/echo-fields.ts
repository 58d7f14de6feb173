import { isObject } from '#wire';

type Json = Readonly<Record<string, unknown>>;

/**
 * The members of a message that a provider wants back with the results of its tool calls. Some providers refuse a
 * request without them. Each goes back under the name that the provider used.
 */
const KEPT = ['reasoning_content', 'reasoning', 'reasoning_details', 'extra_content'] as const;

/** Collects these members of a message. */
interface EchoFields {
  /** Adds those of a delta, or of a whole message. */
  add(delta: Json): void;
  /** They are empty if they have more than `lengthMax` characters. */
  members: Record<string, unknown>;
  /** The characters of all members. */
  length: number;
}

export function createEchoFields(lengthMax: number): EchoFields {
  return {
    members: {},
    length: 0,
    add(delta) {
      for (const name of KEPT) {
        const value = delta[name] ?? '';
        if (value === '') continue;
        this.length += lengthOf(value);
        if (this.length > lengthMax) this.members = {};
        else this.members[name] = joined(this.members[name], value);
      }
    },
  };
}

const OWN: ReadonlySet<string> = new Set(['index', 'id', 'type', 'function']);

/**
 * The members of a tool call that only its provider understands, such as `extra_content` of Gemini. A provider may
 * refuse the call without them.
 */
export function furtherMembers(call: Json): Json {
  const further = Object.entries(call).filter(([name, value]) => !OWN.has(name) && (value ?? null) !== null);
  return further.length === 0 ? NOTHING : Object.fromEntries(further);
}

/** Characters of a value in a request. */
export const lengthOf = (value: unknown): number =>
  typeof value === 'string' ? value.length : (JSON.stringify(value)?.length ?? 0);

export const NOTHING: Json = Object.freeze({});

function joined(before: unknown, more: unknown): unknown {
  if (typeof before === 'string' && typeof more === 'string') return before + more;
  if (!Array.isArray(more)) return more;
  const all: unknown[] = Array.isArray(before) ? (before as unknown[]) : [];
  for (const detail of more as unknown[]) addDetail(all, detail);
  return all;
}

/** The texts of `reasoning_details` that arrive in pieces. */
const TEXTS = ['text', 'summary', 'data'];

/** A detail with the same index and type continues the one before it. */
function addDetail(all: unknown[], detail: unknown): void {
  const last = all.at(-1);
  const continues =
    isObject(last) &&
    isObject(detail) &&
    typeof detail['index'] === 'number' &&
    last['index'] === detail['index'] &&
    last['type'] === detail['type'];
  if (!continues) return void all.push(isObject(detail) ? { ...detail } : detail);
  const kept = last as Record<string, unknown>;
  for (const [name, value] of Object.entries(detail)) {
    if ((value ?? null) === null) continue;
    const said = kept[name];
    kept[name] = TEXTS.includes(name) && typeof said === 'string' && typeof value === 'string' ? said + value : value;
  }
}

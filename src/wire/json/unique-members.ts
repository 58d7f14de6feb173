import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  decodeKey,
  duplicate,
  keyEnd,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipSpace,
  unexpected,
  valueEnd,
} from './json-scan.ts';
import type { Member, Members } from './raw-json.ts';

/** From this many keys on, a set finds a key faster than a search. */
const MANY = 12;

/** The keys of an object so far. */
interface Keys {
  readonly list: string[];
  set: Set<string> | null;
}

/**
 * Like membersOf, and also throws for duplicate keys in the objects at all levels inside. Linear time, no recursion.
 */
export function uniqueMembersOf(text: string, at = 0): Members {
  const members = new Map<string, Member>();
  const around: (Keys | null)[] = [];
  let keys: Keys | null = null;
  let name = '';
  let keyStart = 0;
  let start = 0;
  let i = skipSpace(text, at);
  if (text.charCodeAt(i) !== OPEN_BRACE) throw unexpected(text, i, 'an object');
  for (; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case QUOTE: {
        const behind = keyEnd(text, i);
        const colon = keys === null ? -1 : skipSpace(text, behind);
        if (keys === null || text.charCodeAt(colon) !== COLON) {
          i = behind - 1;
          break;
        }
        const key = decodeKey(text, i, behind);
        if (had(keys, key)) throw duplicate(key, i);
        const value = skipSpace(text, colon + 1);
        const first = text.charCodeAt(value);
        const isInside = first === OPEN_BRACE || first === OPEN_BRACKET;
        const end = isInside ? value : valueEnd(text, value);
        if (around.length === 1) {
          if (isInside) [name, keyStart, start] = [key, i, value];
          else members.set(key, { keyStart: i, start: value, end });
        }
        i = end - 1;
        break;
      }
      case OPEN_BRACE:
        around.push(keys);
        keys = { list: [], set: null };
        break;
      case OPEN_BRACKET:
        around.push(keys);
        keys = null;
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        keys = around.pop()!;
        if (around.length === 0) return members;
        if (around.length === 1) members.set(name, { keyStart, start, end: i + 1 });
    }
  }
  throw unexpected(text, i, 'the end of the object');
}

/** Whether the key was there before. Adds it if not. */
function had(keys: Keys, key: string): boolean {
  const { list, set } = keys;
  if (set !== null) return set.size === set.add(key).size;
  if (list.includes(key)) return true;
  list.push(key);
  if (list.length === MANY) keys.set = new Set(list);
  return false;
}

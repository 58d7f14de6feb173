import { isObject, type JsonObject } from '#wire';
import type { Part } from '#gateway';
import { fromA2aParts } from './parts.ts';

/** The artifacts of one answer. Agents repeat them: as a whole, in pieces, and as the text of the last message. */
interface ShownArtifacts {
  /** Takes a streamed piece of an artifact. Returns its parts. `append`: it continues the piece before. */
  piece(artifact: unknown, append: boolean): NewParts | null;
  /** Takes a complete artifact. Returns the parts that are new. */
  whole(artifact: unknown): NewParts | null;
  /** Whether `text` is the text of one artifact, or of all artifacts together. */
  repeats(text: string): boolean;
}

export interface NewParts {
  readonly artifactId: string;
  readonly parts: readonly Part[];
}

/** The part of an artifact that was already shown. */
interface Shown {
  /** Characters of text. */
  readonly chars: number;
  /** Parts that are not text. */
  readonly others: number;
  /** The text; empty if it is too long to be compared. */
  readonly text: string;
}

const NOTHING: Shown = { chars: 0, others: 0, text: '' };
/** The longest artifact, in characters, that is compared with the last message. */
const COMPARED_MAX = 16 * 1024;
/** How many messages or artifacts of one answer are remembered. */
export const REMEMBERED_MAX = 20_000;
const NAME_CHARS_MAX = 256;

export function createShownArtifacts(): ShownArtifacts {
  const shown = new Map<string, Shown>();

  function take(artifact: JsonObject, append: boolean): NewParts & { readonly before: Shown } {
    const artifactId = boundedName(artifact['artifactId']);
    const parts = fromA2aParts(artifact['parts']);
    const before = shown.get(artifactId) ?? NOTHING;
    if (shown.has(artifactId) || shown.size < REMEMBERED_MAX)
      shown.set(artifactId, withParts(append ? before : NOTHING, parts));
    return { artifactId, parts, before };
  }

  return {
    piece: (artifact, append) => (isObject(artifact) ? take(artifact, append) : null),
    whole(artifact) {
      if (!isObject(artifact)) return null;
      const { artifactId, parts, before } = take(artifact, false);
      return { artifactId, parts: withoutShown(parts, before) };
    },
    repeats(text) {
      if (text.length >= COMPARED_MAX) return false;
      const texts = [...shown.values()].map((one) => one.text);
      return texts.includes(text) || texts.join('\n') === text;
    },
  };
}

function withParts({ chars, others, text }: Shown, parts: readonly Part[]): Shown {
  const more = textOf(parts);
  return {
    chars: chars + more.length,
    others: others + parts.filter(({ kind }) => kind !== 'text').length,
    text: chars + more.length < COMPARED_MAX ? text + more : '',
  };
}

/** The parts of an artifact after those that were already shown. */
function withoutShown(parts: readonly Part[], before: Shown): readonly Part[] {
  let { chars, others } = before;
  return parts.flatMap((part): Part[] => {
    if (part.kind !== 'text') return others-- > 0 ? [] : [part];
    const text = part.text.slice(chars);
    chars = Math.max(0, chars - part.text.length);
    return text === '' ? [] : [{ ...part, text }];
  });
}

export const textOf = (parts: readonly Part[]): string =>
  parts.map((part) => (part.kind === 'text' ? part.text : '')).join('');

/** A name from an agent, cut to a maximum length; empty if the value is not a string. */
export const boundedName = (value: unknown): string =>
  typeof value === 'string' ? value.slice(0, NAME_CHARS_MAX) : '';

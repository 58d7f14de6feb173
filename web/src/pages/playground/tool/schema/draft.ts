import type { Shape } from './shape.ts';

/** The content of a form's fields, as typed: text for texts and numbers, and JSON text. undefined is not sent. */
export type Draft = unknown;

/** A choice between alternatives: the chosen index, and what was typed for each. */
export interface OneOfDraft {
  readonly at: number;
  readonly drafts: readonly Draft[];
}

/** The draft of an empty form, or of a form that shows `value`. */
export function draftOf(shape: Shape, value: unknown = shape.initial, required = true): Draft {
  switch (shape.kind) {
    case 'text':
      return typeof value === 'string' ? value : '';
    case 'number':
      return typeof value === 'number' ? String(value) : '';
    case 'flag':
      return typeof value === 'boolean' ? value : required ? false : undefined;
    case 'choice': {
      const at = shape.options.findIndex((option) => JSON.stringify(option) === JSON.stringify(value));
      return at >= 0 ? at : required && shape.options.length === 1 ? 0 : undefined;
    }
    case 'fixed':
      return required || value !== undefined;
    case 'list': {
      const items: readonly unknown[] = Array.isArray(value)
        ? value
        : Array.from({ length: required ? Math.min(shape.min, 20) : 0 });
      return items.map((item) => draftOf(shape.item, item ?? shape.item.initial));
    }
    case 'group': {
      const object = (value ?? {}) as Readonly<Record<string, unknown>>;
      return Object.fromEntries(
        shape.members.map(({ name, shape: member, required: needed }) => [
          name,
          draftOf(member, Object.hasOwn(object, name) ? object[name] : member.initial, needed),
        ]),
      );
    }
    case 'one-of': {
      const drafts = shape.options.map((option) => draftOf(option, value ?? option.initial));
      const at =
        value === undefined ? -1 : shape.options.findIndex((option, index) => says(option, drafts[index], value));
      return { at: at < 0 && required ? 0 : at, drafts } satisfies OneOfDraft;
    }
    case 'json':
      return value === undefined ? '' : JSON.stringify(value, null, 2);
  }
}

/** Whether a draft stands for exactly this value. */
function says(shape: Shape, draft: Draft, value: unknown): boolean {
  const faults = new Map<string, string>();
  const read = readDraft(shape, draft, { required: true, path: '' }, faults);
  return faults.size === 0 && sorted(read) === sorted(value);
}

/** JSON in which the order of members does not matter. */
const sorted = (value: unknown): string =>
  JSON.stringify(value, (_name, each: unknown) =>
    typeof each === 'object' && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([one], [other]) => (one < other ? -1 : 1)))
      : each,
  );

/** Error messages by the path of the field: `address.city`. */
export type Faults = ReadonlyMap<string, string>;

/** Returns the value of a draft, and adds its errors to `faults`. An undefined value is omitted. */
export function readDraft(
  shape: Shape,
  draft: Draft,
  { required, path }: { readonly required: boolean; readonly path: string },
  faults: Map<string, string>,
): unknown {
  const fault = (text: string): undefined => {
    faults.set(path, text);
    return undefined;
  };
  const missing = () => (required ? fault('This is needed.') : undefined);
  switch (shape.kind) {
    case 'text': {
      const text = draft as string;
      if (text === '') return missing();
      const wrong = faultOfText(shape, text);
      return wrong === null ? text : fault(wrong);
    }
    case 'number': {
      const text = (draft as string).trim();
      if (text === '') return missing();
      const value = Number(text);
      if (!Number.isFinite(value)) return fault('Write a number.');
      if (shape.whole && !Number.isInteger(value)) return fault('Write a whole number.');
      if (value < shape.min) return fault(`It is at least ${shape.min}.`);
      return value > shape.max ? fault(`It is at most ${shape.max}.`) : value;
    }
    case 'flag':
      return draft;
    case 'choice':
      return draft === undefined ? missing() : shape.options[draft as number];
    case 'fixed':
      return draft === true ? shape.value : undefined;
    case 'list': {
      const items = draft as readonly Draft[];
      if (items.length === 0 && !required) return undefined;
      if (items.length < shape.min) return fault(`It needs at least ${shape.min}.`);
      if (items.length > shape.max) return fault(`It takes at most ${shape.max}.`);
      return items.map((item, index) =>
        readDraft(shape.item, item, { required: true, path: `${path}[${index}]` }, faults),
      );
    }
    case 'group':
      return readGroup(shape, draft as Readonly<Record<string, Draft>>, { required, path }, faults);
    case 'one-of': {
      const { at, drafts } = draft as OneOfDraft;
      if (at < 0) return missing();
      return readDraft(shape.options[at]!, drafts[at], { required, path }, faults);
    }
    case 'json': {
      const text = (draft as string).trim();
      if (text === '') return missing();
      try {
        return JSON.parse(text) as unknown;
      } catch {
        return fault('This is not JSON. Texts stand in double quotes.');
      }
    }
  }
}

function readGroup(
  shape: Extract<Shape, { kind: 'group' }>,
  draft: Readonly<Record<string, Draft>>,
  { required, path }: { readonly required: boolean; readonly path: string },
  faults: Map<string, string>,
): unknown {
  const found = new Map<string, string>();
  const value: Record<string, unknown> = {};
  for (const member of shape.members) {
    const at = path === '' ? member.name : `${path}.${member.name}`;
    const read = readDraft(member.shape, draft[member.name], { required: member.required, path: at }, found);
    if (read !== undefined)
      Object.defineProperty(value, member.name, { value: read, enumerable: true, writable: true, configurable: true });
  }
  // An optional object is omitted if no field of it is filled in.
  if (!required && Object.keys(value).length === 0 && [...found.values()].every((text) => text === 'This is needed.'))
    return undefined;
  for (const [at, text] of found) faults.set(at, text);
  return value;
}

const PATTERN_TEXT_MAX = 2_000;

function faultOfText(shape: Extract<Shape, { kind: 'text' }>, text: string): string | null {
  if (text.length < shape.minLength) return `It has at least ${shape.minLength} letters.`;
  if (text.length > shape.maxLength) return `It has at most ${shape.maxLength} letters.`;
  if (shape.format === 'uri' && !URL.canParse(text)) return 'Write an address, such as https://example.com/.';
  if (shape.format === 'email' && !/^[^\s@]+@[^\s@]+$/.test(text)) return 'Write an email address.';
  if (shape.format === 'date' && Number.isNaN(Date.parse(text))) return 'Write a date, such as 2026-01-31.';
  // A stranger's pattern may take forever to match. So only simple patterns are used, and only on short texts.
  if (
    shape.pattern !== null &&
    text.length < PATTERN_TEXT_MAX &&
    isSimple(shape.pattern) &&
    !matches(shape.pattern, text)
  )
    return `It has to match ${shape.pattern}`;
  return null;
}

/** A pattern without nested repetitions, which would make it slow. */
const isSimple = (pattern: string): boolean =>
  pattern.length <= 200 && !/[*+}]\)?[*+{]|\)[*+{]/.test(pattern) && (pattern.match(/[*+]|\{\d*,/g) ?? []).length <= 2;

function matches(pattern: string, text: string): boolean {
  try {
    return new RegExp(pattern, 'u').test(text);
  } catch {
    return true;
  }
}

/** The form fields for a JSON Schema, as far as a form can show it. */
export type Shape = { readonly title: string; readonly description: string; readonly initial: unknown } & (
  | {
      readonly kind: 'text';
      readonly long: boolean;
      readonly format: string;
      readonly pattern: string | null;
      readonly minLength: number;
      readonly maxLength: number;
    }
  | { readonly kind: 'number'; readonly whole: boolean; readonly min: number; readonly max: number }
  | { readonly kind: 'flag' }
  | { readonly kind: 'choice'; readonly options: readonly unknown[] }
  | { readonly kind: 'fixed'; readonly value: unknown }
  | { readonly kind: 'list'; readonly item: Shape; readonly min: number; readonly max: number }
  | { readonly kind: 'group'; readonly members: readonly Member[] }
  | { readonly kind: 'one-of'; readonly options: readonly Shape[] }
  /** A form can't show it, so it is typed as JSON. */
  | { readonly kind: 'json' }
);

export interface Member {
  readonly name: string;
  readonly required: boolean;
  readonly shape: Shape;
}

type Json = Readonly<Record<string, unknown>>;

const DEPTH_MAX = 6;
const MEMBERS_MAX = 100;
const OPTIONS_MAX = 500;
const TEXT_MAX = 1_000;
const LONG_NAME = /^(?:text|content|body|prompt|html|markdown|code|message|query_text|input|document)$/i;
const LONG_FROM = 200;

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const words = (value: unknown): string => (typeof value === 'string' ? value.slice(0, TEXT_MAX) : '');
const bound = (value: unknown, otherwise: number): number => (typeof value === 'number' ? value : otherwise);

/** The shape of a tool's arguments. null if no form can be made of its schema. Then the arguments are typed as JSON. */
export function shapeOfArguments(schema: unknown): Extract<Shape, { kind: 'group' }> | null {
  if (!isObject(schema)) return null;
  const shape = shapeOf(schema, { root: schema, name: '', depth: 0 });
  return shape.kind === 'group' ? shape : null;
}

interface Place {
  /** The document in which references are resolved. */
  readonly root: Json;
  readonly name: string;
  readonly depth: number;
}

function shapeOf(given: unknown, place: Place): Shape {
  const { schema, optional } = plain(given, place);
  const about = {
    title: words(schema['title']),
    description: words(schema['description']),
    initial: schema['default'],
  };
  if (place.depth > DEPTH_MAX) return { ...about, kind: 'json' };
  if (Object.hasOwn(schema, 'const')) return { ...about, kind: 'fixed', value: schema['const'] };
  const listed = schema['enum'];
  if (Array.isArray(listed) && listed.length > 0 && listed.length <= OPTIONS_MAX) {
    const options = optional ? listed.filter((each) => each !== null) : listed;
    return { ...about, kind: 'choice', options };
  }
  const options = schema['oneOf'] ?? schema['anyOf'];
  if (Array.isArray(options) && options.length > 0 && options.length <= MEMBERS_MAX) {
    const shapes = options.map((option) => shapeOf(option, { ...place, depth: place.depth + 1 }));
    if (shapes.every(({ kind }) => kind === 'fixed'))
      return { ...about, kind: 'choice', options: shapes.map((shape) => (shape as { value: unknown }).value) };
    return { ...about, kind: 'one-of', options: shapes };
  }
  return typed(schema, about, place);
}

function typed(schema: Json, about: Pick<Shape, 'title' | 'description' | 'initial'>, place: Place): Shape {
  const inner = (name: string): Place => ({ ...place, name, depth: place.depth + 1 });
  switch (typeOf(schema)) {
    case 'string':
      return {
        ...about,
        kind: 'text',
        long:
          LONG_NAME.test(place.name) || (typeof schema['maxLength'] === 'number' && schema['maxLength'] > LONG_FROM),
        format: words(schema['format']),
        pattern: typeof schema['pattern'] === 'string' ? schema['pattern'].slice(0, TEXT_MAX) : null,
        minLength: bound(schema['minLength'], 0),
        maxLength: bound(schema['maxLength'], Infinity),
      };
    case 'number':
    case 'integer':
      return {
        ...about,
        kind: 'number',
        whole: typeOf(schema) === 'integer',
        min: bound(schema['minimum'], -Infinity),
        max: bound(schema['maximum'], Infinity),
      };
    case 'boolean':
      return { ...about, kind: 'flag' };
    case 'array':
      return {
        ...about,
        kind: 'list',
        item: shapeOf(schema['items'] ?? {}, inner(place.name)),
        min: bound(schema['minItems'], 0),
        max: bound(schema['maxItems'], Infinity),
      };
    case 'object': {
      const properties = isObject(schema['properties']) ? Object.entries(schema['properties']) : [];
      if (properties.length > MEMBERS_MAX || (properties.length === 0 && place.depth > 0))
        return { ...about, kind: 'json' };
      const required = new Set(Array.isArray(schema['required']) ? schema['required'] : []);
      const members = properties.map(([name, each]) => ({
        name,
        required: required.has(name),
        shape: shapeOf(each, inner(name)),
      }));
      // Required fields come first.
      return {
        ...about,
        kind: 'group',
        members: [...members.filter((member) => member.required), ...members.filter((member) => !member.required)],
      };
    }
    default:
      return { ...about, kind: 'json' };
  }
}

const typeOf = (schema: Json): unknown =>
  schema['type'] ?? (isObject(schema['properties']) ? 'object' : schema['items'] === undefined ? undefined : 'array');

const STEPS_MAX = 16;

/**
 * Unwraps a schema: resolves references in the same document and a single `allOf`, and removes `null` from the
 * alternatives of `type`, `anyOf` and `oneOf`. `optional` is true if null was among them.
 */
function plain(given: unknown, { root }: Place): { readonly schema: Json; readonly optional: boolean } {
  let schema: Json = isObject(given) ? given : {};
  let optional = false;
  for (let step = 0; step < STEPS_MAX; step++) {
    const { $ref: reference, allOf, type } = schema;
    const options = schema['anyOf'] ?? schema['oneOf'];
    if (typeof reference === 'string') schema = { ...find(root, reference), ...without(schema, '$ref') };
    else if (Array.isArray(allOf) && allOf.length === 1 && isObject(allOf[0]))
      schema = { ...allOf[0], ...without(schema, 'allOf') };
    else if (Array.isArray(type) && type.length > 0) {
      const real = type.filter((each) => each !== 'null');
      optional ||= real.length < type.length;
      schema = real.length === 1 ? { ...schema, type: real[0] } : without(schema, 'type');
    } else if (Array.isArray(options) && options.some(isNull)) {
      const real = options.filter((option) => !isNull(option));
      optional = true;
      const rest = without(without(schema, 'anyOf'), 'oneOf');
      schema = real.length === 1 && isObject(real[0]) ? { ...real[0], ...rest } : { ...rest, anyOf: real };
    } else break;
  }
  return { schema, optional };
}

const isNull = (option: unknown) => isObject(option) && option['type'] === 'null';

const without = (schema: Json, name: string): Json =>
  Object.fromEntries(Object.entries(schema).filter(([each]) => each !== name));

/** Resolves a reference in the same document. Returns an empty schema if the target doesn't exist. */
function find(root: Json, reference: string): Json {
  if (!reference.startsWith('#/')) return {};
  let found: unknown = root;
  for (const step of reference.slice(2).split('/')) {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~');
    found = isObject(found) && Object.hasOwn(found, name) ? found[name] : null;
  }
  return isObject(found) ? found : {};
}

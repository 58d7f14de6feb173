import fc from 'fast-check';
import { anyCharacter } from './any-character.ts';

/* Values for a JSON schema, for requests as a client would make them that knows only the document. */

type Schema = Readonly<Record<string, unknown>>;

const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const listOf = (value: unknown): readonly Schema[] => (Array.isArray(value) ? value.filter(isSchema) : []);

/** How a text with this format is made. */
const FORMATS: Readonly<Record<string, fc.Arbitrary<string>>> = {
  date: fc
    .date({ min: new Date(0), max: new Date('2099-12-31'), noInvalidDate: true })
    .map((at) => at.toISOString().slice(0, 10)),
  'date-time': fc
    .date({ min: new Date(0), max: new Date('2099-12-31'), noInvalidDate: true })
    .map((at) => at.toISOString()),
  uri: fc.constantFrom('https://example.com/', 'https://example.com/a/b?c=d'),
};

/** How much more often an optional member is absent. */
const SELDOM = 4;

/**
 * Values that a JSON schema allows, most of them: what `not` and the like forbid is among them, so a validator has to
 * look at each. The schema has no references.
 */
export function anyOfSchema(schema: Schema): fc.Arbitrary<unknown> {
  const values = valuesOf(schema);
  if (values === null) throw new Error(`No value fits ${JSON.stringify(schema).slice(0, 300)}`);
  return values;
}

type Values<T = unknown> = fc.Arbitrary<T> | null;

const oneOf = (alternatives: readonly Values[]): Values => {
  const possible = alternatives.filter((one) => one !== null);
  return possible.length === 0 ? null : fc.oneof(...possible);
};

/** null if no value fits. */
function valuesOf(schema: Schema): Values {
  const { plain, choices } = flat(schema);
  const [first, ...others] = choices;
  if (first !== undefined) {
    const rest = others.map((anyOf) => ({ anyOf }));
    return oneOf(first.map((one) => valuesOf({ allOf: [plain, one, ...rest] })));
  }
  if (plain['const'] !== undefined) return fc.constant(plain['const']);
  if (Array.isArray(plain['enum']))
    return plain['enum'].length === 0 ? null : fc.constantFrom(...(plain['enum'] as unknown[]));
  const has = (keyword: string) => plain[keyword] !== undefined;
  const ofObject = has('properties') || has('required');
  if (!has('type') && !ofObject && !has('pattern') && !has('items')) return ANYTHING;
  const usual = ofObject ? 'object' : has('items') ? 'array' : 'string';
  return oneOf([plain['type'] ?? usual].flat().map((type) => anyOfType(String(type), plain)));
}

const ANYTHING = fc.constantFrom<unknown>('text', '', 7, 0.5, true, null, [], ['text'], {}, { member: 'text' });

/** A schema without alternatives, and the lists of alternatives of each of which one has to hold. */
interface Flat {
  readonly plain: Schema;
  readonly choices: readonly (readonly Schema[])[];
}

function flat({ allOf, anyOf, oneOf, not, ...plain }: Schema): Flat {
  const choices = [listOf(anyOf), listOf(oneOf)].filter((list) => list.length > 0);
  const twice = isSchema(not) && isSchema(not['not']) ? [not['not']] : [];
  return [...listOf(allOf), ...twice]
    .map(flat)
    .reduce((one, other) => ({ plain: both(one.plain, other.plain), choices: [...one.choices, ...other.choices] }), {
      plain,
      choices,
    });
}

/** The schema of what both allow. */
function both(one: Schema, other: Schema): Schema {
  const merged: Record<string, unknown> = { ...one };
  for (const [keyword, value] of Object.entries(other)) {
    const known = merged[keyword];
    if (known === undefined) merged[keyword] = value;
    else if (keyword === 'properties' && isSchema(known) && isSchema(value)) merged[keyword] = bothOfEach(known, value);
    else if (keyword === 'items' && isSchema(known) && isSchema(value)) merged[keyword] = both(known, value);
    else if (keyword === 'required') merged[keyword] = [...new Set([known, value].flat())];
    else if (keyword === 'type' || keyword === 'enum') {
      const allowed = [value].flat();
      merged[keyword] = [known].flat().filter((each) => allowed.includes(each));
    } else if (/^(?:min|exclusiveMin)/.test(keyword)) merged[keyword] = Math.max(known as number, value as number);
    else if (/^(?:max|exclusiveMax)/.test(keyword)) merged[keyword] = Math.min(known as number, value as number);
    else merged[keyword] = value;
  }
  return merged;
}

const bothOfEach = (known: Schema, other: Schema): Schema => {
  const merged: Record<string, unknown> = { ...known };
  for (const [name, schema] of Object.entries(other))
    merged[name] = isSchema(merged[name]) && isSchema(schema) ? both(merged[name], schema) : schema;
  return merged;
};

function anyOfType(type: string, schema: Schema): Values {
  switch (type) {
    case 'null':
      return fc.constant(null);
    case 'boolean':
      return fc.boolean();
    case 'integer':
      return anyInteger(schema);
    case 'number':
      return oneOf([anyInteger(schema), anyNumber(schema)]);
    case 'string':
      return anyText(schema);
    case 'array':
      return anyArray(schema);
    default:
      return anyObject(schema);
  }
}

function anyInteger(schema: Schema): Values<number> {
  const min = Math.ceil(Number(schema['minimum'] ?? schema['exclusiveMinimum'] ?? Number.MIN_SAFE_INTEGER));
  const max = Math.floor(Number(schema['maximum'] ?? schema['exclusiveMaximum'] ?? Number.MAX_SAFE_INTEGER));
  if (min > max) return null;
  const near = fc.integer({ min: Math.max(min, Math.min(-3, max)), max: Math.min(max, Math.max(100, min)) });
  return fc.oneof(near, fc.integer({ min, max }));
}

function anyNumber(schema: Schema): Values<number> {
  const min = Number(schema['minimum'] ?? schema['exclusiveMinimum'] ?? -Number.MAX_VALUE);
  const max = Number(schema['maximum'] ?? schema['exclusiveMaximum'] ?? Number.MAX_VALUE);
  // Amounts of money have at most 6 decimal places, which a schema cannot say.
  return min > max ? null : fc.double({ min, max, noNaN: true }).map((value) => Number(value.toFixed(6)));
}

const TEXT_MAX = 60;

function anyText(schema: Schema): fc.Arbitrary<string> {
  const { pattern, format } = schema;
  const minLength = Number(schema['minLength'] ?? 0);
  const maxLength = Math.max(minLength, Math.min(Number(schema['maxLength'] ?? TEXT_MAX), TEXT_MAX));
  if (typeof format === 'string' && FORMATS[format]) return FORMATS[format];
  if (typeof pattern === 'string') return fc.stringMatching(new RegExp(pattern, 'u'));
  return fc.oneof(fc.string({ minLength, maxLength }), fc.string({ minLength, maxLength, unit: anyCharacter }));
}

const ITEMS_MAX = 3;

function anyArray(schema: Schema): Values<unknown[]> {
  const minLength = Number(schema['minItems'] ?? 0);
  const maxLength = Math.max(minLength, Math.min(Number(schema['maxItems'] ?? ITEMS_MAX), ITEMS_MAX));
  const items = valuesOf(isSchema(schema['items']) ? schema['items'] : {});
  if (items === null) return minLength === 0 ? fc.constant([]) : null;
  return fc.array(items, { minLength, maxLength });
}

function anyObject(schema: Schema): Values<Record<string, unknown>> {
  const properties = isSchema(schema['properties']) ? schema['properties'] : {};
  const required = (schema['required'] ?? []) as readonly string[];
  const members: [name: string, values: fc.Arbitrary<unknown>][] = [];
  for (const name of new Set([...Object.keys(properties), ...required])) {
    const values = valuesOf(isSchema(properties[name]) ? properties[name] : {});
    if (values === null && required.includes(name)) return null;
    if (values === null) continue;
    members.push([name, required.includes(name) ? values : maybe(values, SELDOM)]);
  }
  const others = schema['additionalProperties'];
  const more = others === false ? null : valuesOf(isSchema(others) ? others : {});
  if (more !== null) members.push(['another', maybe(more, SELDOM * 3)]);
  return fc
    .tuple(...members.map(([, values]) => values))
    .map(
      (values) =>
        Object.fromEntries(
          members.map(([name], index) => [name, values[index]]).filter(([, value]) => value !== undefined),
        ) as Record<string, unknown>,
    );
}

const maybe = (values: fc.Arbitrary<unknown>, weight: number): fc.Arbitrary<unknown> =>
  fc.oneof({ weight, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: values });

import { DOCUMENTED, MUST_BE } from '#http';
import { isObject } from '#wire';

export type Schema = Readonly<Record<string, unknown>>;

/** Keywords whose value is a schema, a list of schemas, or schemas by name. */
const ONE: readonly string[] = [
  'items',
  'additionalProperties',
  'not',
  'if',
  'then',
  'else',
  'contains',
  'propertyNames',
];
const MANY: readonly string[] = ['anyOf', 'oneOf', 'allOf', 'prefixItems'];
const NAMED: readonly string[] = ['properties', 'patternProperties', 'dependentSchemas'];

export function mapInner(schema: Schema, change: (inner: Schema) => unknown): Schema {
  const changed = (inner: unknown) => (isObject(inner) ? change(inner) : inner);
  const entries = Object.entries(schema).map(([keyword, value]) => {
    if (ONE.includes(keyword)) return [keyword, changed(value)];
    if (MANY.includes(keyword) && Array.isArray(value)) return [keyword, value.map(changed)];
    if (NAMED.includes(keyword) && isObject(value))
      return [keyword, Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, changed(inner)]))];
    return [keyword, value];
  });
  return Object.fromEntries(entries) as Schema;
}

/** Keywords that say something of values of one type only. */
const OF_TYPE: Readonly<Record<string, readonly string[]>> = {
  string: ['pattern', 'minLength', 'maxLength', 'format', 'contentEncoding', 'contentMediaType'],
  number: ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  array: ['items', 'prefixItems', 'minItems', 'maxItems', 'uniqueItems', 'contains'],
  object: [
    'properties',
    'patternProperties',
    'additionalProperties',
    'required',
    'minProperties',
    'maxProperties',
    'propertyNames',
    'dependentRequired',
  ],
};
const ALL_OF_TYPES = Object.values(OF_TYPE).flat();

/**
 * The same schema in the words that generators of clients understand, with what the code checks besides. What it
 * accepts stays the same, with one exception: a value that is always null is described as a text or null, because few
 * languages have a type for null.
 */
export function portable(schema: Schema): Schema {
  const { [MUST_BE]: _shown, [DOCUMENTED]: documented = {}, ...rest } = schema;
  const { allOf: rules = [], ...words } = documented as Schema & { readonly allOf?: readonly Schema[] };
  const result = mapInner({ ...rest, ...words }, portable);
  return withRules(withOneType(withHiddenAlternatives(withPlainEnum(withoutBareNull(result)))), rules);
}

/** Adds rules that hold besides. They are behind two negations, where generators do not make types of them. */
function withRules(schema: Schema, rules: readonly Schema[]): Schema {
  if (rules.length === 0) return schema;
  const { not, ...rest } = schema;
  const known = not === undefined ? [] : [isObject(not) && isObject(not['not']) ? not['not'] : { not }];
  const all = [...known, ...rules.map(plainRule)];
  return { ...rest, not: { not: all.length === 1 ? all[0] : { allOf: all } } };
}

/**
 * A rule in words that generators and linters read without a mistake. Linters want to see each required member among
 * the properties.
 */
function plainRule(rule: Schema): Schema {
  const plain = withItems(withPlainEnum(mapInner(rule, plainRule)));
  const names = (plain['required'] ?? []) as readonly string[];
  if (names.length === 0) return plain;
  const properties = (plain['properties'] ?? {}) as Schema;
  return { ...plain, properties: { ...Object.fromEntries(names.map((name) => [name, {}])), ...properties } };
}

function withoutBareNull(schema: Schema): Schema {
  const { enum: values, ...rest } = schema;
  const isOnlyNull = Array.isArray(values) && values.length > 0 && values.every((value) => value === null);
  if (schema['type'] === 'null') return { ...schema, type: ['string', 'null'] };
  if (isOnlyNull) return { ...rest, type: ['string', 'null'], not: { not: { const: null } } };
  if (!Array.isArray(values) || schema['type'] !== undefined) return schema;
  const types = [...new Set(values.map(typeOf))];
  return { ...schema, type: types.length === 1 ? types[0] : types };
}

/**
 * Generators make constants of an enumeration. They cannot make one for a boolean, for null beside a number, or for a
 * number that stands alone. Behind two negations the same rule stays for those who validate.
 */
function withPlainEnum(schema: Schema): Schema {
  const { enum: several, const: only, ...rest } = schema;
  if (schema['not'] !== undefined) return schema;
  if (typeof only === 'number' || typeof only === 'boolean') return { ...rest, not: { not: { const: only } } };
  const isHard =
    Array.isArray(several) &&
    several.some((value) => typeof value === 'boolean' || (typeof value === 'number' && several.includes(null)));
  return isHard ? { ...rest, not: { not: { enum: several } } } : schema;
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value;
}

/**
 * Alternatives that only narrow an object which has its properties beside them would make generators drop the
 * properties. Behind two negations the same rule stays for those who validate.
 */
function withHiddenAlternatives(schema: Schema): Schema {
  if (schema['properties'] === undefined && schema['type'] !== 'object') return schema;
  const narrowing = ['anyOf', 'oneOf', 'allOf'].filter((keyword) => isNarrowing(schema[keyword]));
  if (narrowing.length === 0 || schema['not'] !== undefined) return schema;
  const rest = Object.fromEntries(Object.entries(schema).filter(([keyword]) => !narrowing.includes(keyword)));
  const rules = Object.fromEntries(narrowing.map((keyword) => [keyword, schema[keyword]]));
  return { ...rest, not: { not: rules } };
}

/** Whether none of these schemas has a type, a reference or values of its own. */
function isNarrowing(alternatives: unknown): boolean {
  return (
    Array.isArray(alternatives) &&
    alternatives.every((one) => isObject(one) && !['type', '$ref', 'enum', 'const'].some((keyword) => keyword in one))
  );
}

/** Makes one schema for each type of a value that may have several. Null stays a variant of each. */
function withOneType(schema: Schema): Schema {
  const { type } = schema;
  if (!Array.isArray(type)) return withItems(schema);
  const types = (type as readonly string[]).filter((one) => one !== 'null');
  if (types.length < 2) return withItems(schema);
  const nullable = type.length > types.length;
  const shared = Object.fromEntries(
    Object.entries(schema).filter(([name]) => ![...ALL_OF_TYPES, 'type', 'enum'].includes(name)),
  );
  const anyOf = types.map((one) => {
    const own = OF_TYPE[one === 'integer' ? 'number' : one] ?? [];
    const values: unknown = schema['enum'];
    return withItems({
      type: nullable ? [one, 'null'] : one,
      ...Object.fromEntries(Object.entries(schema).filter(([name]) => own.includes(name))),
      ...(Array.isArray(values) ? { enum: values.filter((value) => value === null || isOf(value, one)) } : {}),
    });
  });
  return { ...shared, anyOf };
}

const isOf = (value: unknown, type: string): boolean =>
  typeOf(value) === type || (type === 'number' && typeof value === 'number');

/** Some generators need to be told that the items of an array can be anything. */
function withItems(schema: Schema): Schema {
  const { type } = schema;
  const isArray = type === 'array' || (Array.isArray(type) && type.includes('array'));
  return !isArray || schema['items'] !== undefined || schema['prefixItems'] !== undefined
    ? schema
    : { ...schema, items: {} };
}

/** Whether null is accepted, as far as the types say it. */
export function acceptsNull({ type, anyOf }: Schema): boolean {
  if (Array.isArray(anyOf) && type === undefined) return anyOf.some((one) => isObject(one) && acceptsNull(one));
  return type === 'null' || (Array.isArray(type) && type.includes('null'));
}

export function withoutNull(schema: Schema): Schema {
  const { type, anyOf, enum: values } = schema;
  const types = Array.isArray(type) ? (type as readonly string[]).filter((one) => one !== 'null') : [];
  return {
    ...schema,
    ...(types.length > 0 ? { type: types.length === 1 ? types[0] : types } : {}),
    ...(Array.isArray(values) ? { enum: values.filter((value) => value !== null) } : {}),
    ...(Array.isArray(anyOf) ? { anyOf: anyOf.map((one: unknown) => (isObject(one) ? withoutNull(one) : one)) } : {}),
  };
}

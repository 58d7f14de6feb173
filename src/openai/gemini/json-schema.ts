import { isObject, type JsonObject } from '#wire';

/*
 * Schemas of the Gemini API. They are a selection of OpenAPI with types in upper case; chat models take JSON schemas.
 */

/** Names in a schema whose snake case the API accepts, too. */
const SNAKE: Readonly<Record<string, string>> = {
  any_of: 'anyOf',
  min_items: 'minItems',
  max_items: 'maxItems',
  min_length: 'minLength',
  max_length: 'maxLength',
  min_properties: 'minProperties',
  max_properties: 'maxProperties',
  property_ordering: 'propertyOrdering',
};
/** Numbers of 64 bits, which ProtoJSON writes as texts. */
const COUNTS: ReadonlySet<string> = new Set([
  'minItems',
  'maxItems',
  'minLength',
  'maxLength',
  'minProperties',
  'maxProperties',
]);

/** Turns a schema in the form of the Gemini API into a JSON schema. A part that is no schema stays as it is. */
export function toJsonSchema(schema: unknown): unknown {
  if (!isObject(schema)) return schema;
  const converted: Record<string, unknown> = {};
  for (const [keyword, value] of Object.entries(schema)) {
    const name = SNAKE[keyword] ?? keyword;
    if (name === 'propertyOrdering' || name === 'nullable' || name === 'example') continue;
    if (name === 'type') Object.assign(converted, typeOf(value));
    else if (name === 'properties' && isObject(value))
      converted[name] = Object.fromEntries(Object.entries(value).map(([key, one]) => [key, toJsonSchema(one)]));
    else if (name === 'items' || name === 'additionalProperties') converted[name] = toJsonSchema(value);
    else if (name === 'anyOf' && Array.isArray(value)) converted[name] = value.map(toJsonSchema);
    else if (COUNTS.has(name) && typeof value === 'string' && /^[0-9]+$/.test(value)) converted[name] = Number(value);
    else converted[name] = value;
  }
  if (schema['example'] !== undefined) converted['examples'] = [schema['example']];
  return schema['nullable'] === true ? nullable(converted) : converted;
}

function typeOf(type: unknown): JsonObject {
  if (typeof type !== 'string') return { type };
  return type === 'TYPE_UNSPECIFIED' ? {} : { type: type.toLowerCase() };
}

function nullable(schema: Record<string, unknown>): JsonObject {
  const { type, enum: values } = schema;
  if (typeof type !== 'string') return { anyOf: [schema, { type: 'null' }] };
  return {
    ...schema,
    type: [type, 'null'],
    ...(Array.isArray(values) && !values.includes(null) ? { enum: [...(values as unknown[]), null] } : {}),
  };
}

import { isObject } from '#wire';

/**
 * Whether a JSON schema is in the form that strict models require: each object names all of its properties as required,
 * and has no others. Other schemas are sent as a guide, because a service that enforces them would refuse the request.
 */
export function isStrict(schema: unknown): boolean {
  if (Array.isArray(schema)) return schema.every(isStrict);
  if (!isObject(schema)) return true;
  const { type, properties, required } = schema;
  if (type === 'object' || isObject(properties)) {
    if (schema['additionalProperties'] !== false || !isObject(properties)) return false;
    if (!Object.keys(properties).every((name) => Array.isArray(required) && required.includes(name))) return false;
  }
  return Object.entries(schema).every(([name, value]) =>
    name === 'properties' && isObject(value) ? Object.values(value).every(isStrict) : isStrict(value),
  );
}

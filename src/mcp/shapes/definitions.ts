// Tools, resources, templates and prompts as servers define them.

import { isObject, type JsonObject } from '#wire';
import { described, titled } from './content.ts';
import {
  boolean,
  expected,
  list,
  members,
  number,
  object,
  oneOf,
  present,
  record,
  repaired,
  type Shape,
  text,
} from './shape.ts';

/** The forms in which clients read lists: that of 2026-07-28, and that of all earlier revisions and of bare clients. */
export const FORMS = ['modern', 'legacy'] as const;
export type ListForm = (typeof FORMS)[number];

export const TOOL_NAME_MAX = 256;
/** Most characters of any other name, and of a URI. */
const KEY_MAX = 1_024;

const name = (most: number): Shape =>
  expected(`a string of 1 to ${most} characters`, (value) => {
    return typeof value === 'string' && value !== '' && value.length <= most;
  });

/** Clients in Python refuse a whole list because of one URI that cannot be parsed. */
const uri = expected('a URI', (value) => typeof value === 'string' && value.length <= KEY_MAX && URL.canParse(value));

const schemaMembers = { $schema: text };

/**
 * A schema in `properties`. An older client takes objects only, so the schemas `true` and `false` become the objects
 * that mean the same. A null says nothing, as `true` does.
 */
const property: Shape = (value, at) => {
  if (typeof value === 'object' && value !== null) return true;
  if (value === null || value === true) return repaired(at, () => '{}');
  if (value === false) return repaired(at, () => '{"not":{}}');
  return object(value, at);
};

const ofObject = {
  modern: members({}, { ...schemaMembers, properties: present, required: present }),
  legacy: members({}, { $schema: present, properties: record(property), required: list(text) }),
} as const;

const rootType = oneOf('object');

/**
 * The schema of a tool's arguments. Its root type must be "object". Arguments are always an object, so it is the same
 * schema if it names no type, or several types with "object" among them.
 */
const inputSchema = (form: ListForm): Shape => {
  const typed = members({ type: rootType });
  return (value, at) => {
    if (value === undefined || value === null) return repaired(at, () => '{"type":"object"}');
    if (!isObject(value)) return object(value, at);
    const { type } = value;
    const same = type === undefined || type === null || (Array.isArray(type) && type.includes('object'));
    if (same && at === null) return false;
    const typeAt = at && { ...at, path: [...at.path, 'type'] };
    return (same ? repaired(typeAt, () => '"object"') : typed(value, at)) && ofObject[form](value, at);
  };
};

/**
 * The schema of a tool's output. Outputs of legacy tools are always objects. The schema of an output that is never an
 * object is wrapped as that of `{"result": …}`, which is also the form of its `structuredContent`. A schema that allows
 * both, or that has references, is left out, because a wrapped reference would point to the wrong place.
 */
const outputSchema: Readonly<Record<ListForm, Shape>> = {
  modern: (value, at) => {
    if (typeof value === 'boolean') return repaired(at, () => (value ? '{}' : '{"not":{}}'));
    return ofObject.modern(value, at);
  },
  legacy: (value, at) => {
    if (typeof value === 'boolean') return repaired(at, () => null);
    if (isObject(value) && value['type'] !== 'object') return repaired(at, (written) => wrapped(value, written!));
    return ofObject.legacy(value, at);
  },
};

function wrapped(schema: JsonObject, written: string): string | null {
  const { type, $schema } = schema;
  const types: readonly unknown[] = Array.isArray(type) ? type : [type];
  const neverObject = types.length > 0 && types.every((each) => typeof each === 'string' && each !== 'object');
  if (!neverObject || REFERENCE.test(JSON.stringify(schema))) return null;
  const dialect = typeof $schema === 'string' ? `"$schema":${JSON.stringify($schema)},` : '';
  return `{${dialect}"type":"object","properties":{"result":${written}},"required":["result"]}`;
}

const REFERENCE = /"\$(?:ref|dynamicRef|recursiveRef)":/;

const hints = members(
  {},
  {
    title: text,
    readOnlyHint: boolean,
    destructiveHint: boolean,
    idempotentHint: boolean,
    openWorldHint: boolean,
  },
);

const execution: Readonly<Record<ListForm, Shape>> = {
  modern: present,
  legacy: members({}, { taskSupport: oneOf('required', 'optional', 'forbidden') }),
};

export const tool = (form: ListForm): Shape =>
  members(
    { name: name(TOOL_NAME_MAX), inputSchema: inputSchema(form) },
    {
      ...titled,
      description: text,
      outputSchema: outputSchema[form],
      annotations: hints,
      execution: execution[form],
      _meta: object,
    },
  );

export const resource = members({ name: text, uri }, { ...described, size: number });
export const resourceTemplate = members({ name: text, uriTemplate: name(KEY_MAX) }, described);
const promptArgument = members({ name: text }, { description: text, required: boolean });
export const prompt = members(
  { name: name(KEY_MAX) },
  { ...titled, description: text, arguments: list(promptArgument), _meta: object },
);

import { describe, expect, test } from 'vitest';
import { draftOf, readDraft } from '../../../web/src/pages/playground/tool/schema/draft.ts';
import { shapeOfArguments } from '../../../web/src/pages/playground/tool/schema/shape.ts';
import { atThisLoad } from '../../support/at-this-load.ts';

// Forms are made of the schemas that strangers wrote.

/** The arguments of a form that is filled in with a value, and what is wrong with them. */
function fill(schema: unknown, value?: unknown): { readonly value: unknown; readonly faults: Record<string, string> } {
  const shape = shapeOfArguments(schema)!;
  const faults = new Map<string, string>();
  const read = readDraft(shape, draftOf(shape, value), { required: true, path: '' }, faults);
  return { value: read, faults: Object.fromEntries(faults) };
}

const object = (properties: object, required: readonly string[] = []) => ({ type: 'object', properties, required });

test('defaults are there, what is left out is not sent, and what is needed is asked for', () => {
  const schema = object(
    {
      name: { type: 'string' },
      count: { type: 'integer', default: 3 },
      note: { type: 'string' },
      loud: { type: 'boolean' },
      tags: { type: 'array', items: { type: 'string' } },
      place: object({ city: { type: 'string' }, zip: { type: 'string' } }, ['city']),
    },
    ['name'],
  );
  expect(fill(schema)).toEqual({ value: { count: 3 }, faults: { name: 'This is needed.' } });
  const whole = { name: 'a', count: 2, note: 'b', loud: false, tags: ['x', 'y'], place: { city: 'c', zip: 'd' } };
  expect(fill(schema, whole)).toEqual({ value: whole, faults: {} });
  expect(fill(schema, { name: 'a', place: { zip: 'd' } }).faults).toEqual({ 'place.city': 'This is needed.' });
});

test.each([
  ['the first', 'a'],
  ['a later one', { id: 5 }],
  ['a list', [1, 2]],
  ['one with members in another order', { name: 'x', id: 5 }],
])('an alternative that a value or a default has is chosen: %s', (_what, value) => {
  const numbers = { type: 'array', items: { type: 'integer' } };
  const row = object({ id: { type: 'integer' }, name: { type: 'string' } }, ['id']);
  const it = { anyOf: [{ type: 'string' }, row, numbers] };
  expect(fill(object({ it }), { it: value })).toEqual({ value: { it: value }, faults: {} });
  expect(fill(object({ it }, ['it']), { it: value })).toEqual({ value: { it: value }, faults: {} });
  expect(fill(object({ it: { ...it, default: value } }))).toEqual({ value: { it: value }, faults: {} });
  expect(fill(object({ it }))).toEqual({ value: {}, faults: {} });
});

test.each([
  ['a number', { type: 'number', minimum: 1, maximum: 5 }, 9, 'It is at most 5.'],
  ['a whole number', { type: 'integer' }, 1.5, 'Write a whole number.'],
  ['a short text', { type: 'string', minLength: 3 }, 'ab', 'It has at least 3 letters.'],
  ['a pattern', { type: 'string', pattern: '^[a-z]+$' }, 'A1', 'It has to match ^[a-z]+$'],
  ['an address', { type: 'string', format: 'uri' }, 'nowhere', 'Write an address, such as https://example.com/.'],
  ['too few items', { type: 'array', items: { type: 'string' }, minItems: 2 }, ['a'], 'It needs at least 2.'],
])('%s out of its limits is told before anything is sent', (_what, schema, value, fault) => {
  expect(fill(object({ it: schema }, ['it']), { it: value }).faults).toEqual({ it: fault });
});

test.each([
  ['a choice', { enum: ['a', 'b', 3] }, 'choice'],
  ['constants', { oneOf: [{ const: 'a' }, { const: 'b' }] }, 'choice'],
  ['null beside a type', { anyOf: [{ type: 'string' }, { type: 'null' }] }, 'text'],
  ['null among types', { type: ['integer', 'null'] }, 'number'],
  ['kinds to choose from', { oneOf: [{ type: 'string' }, object({ a: { type: 'number' } })] }, 'one-of'],
  ['a reference', { $ref: '#/$defs/Size' }, 'choice'],
  ['a reference that leads nowhere', { $ref: '#/nowhere' }, 'json'],
  ['a reference to another document', { $ref: 'https://evil.example/schema.json' }, 'json'],
  ['an object of any members', { type: 'object', additionalProperties: true }, 'json'],
  ['no type', {}, 'json'],
  ['no schema at all', 7, 'json'],
  ['a type that is none', { type: 'quantum' }, 'json'],
])('%s has its field', (_what, schema, kind) => {
  const shape = shapeOfArguments({ ...object({ it: schema }), $defs: { Size: { enum: ['S', 'M'] } } })!;
  expect(shape.members[0]!.shape.kind).toBe(kind);
});

describe('a hostile schema', () => {
  test('that refers to itself ends', () => {
    const shape = shapeOfArguments({ ...object({ it: { $ref: '#' } }), $ref: undefined });
    expect(JSON.stringify(shape).length).toBeLessThan(10_000);
    expect(shapeOfArguments({ $ref: '#' })).toBeNull();
  });

  test.each([
    [null],
    ['text'],
    [[]],
    [{ type: 'array' }],
    [{ properties: 'no' }],
    [{ type: 'object', properties: big() }],
  ])('of which no form can be made is written as JSON', (schema) => {
    expect(shapeOfArguments(schema)).toBeNull();
  });

  test('with a pattern that takes for ever is not tried', () => {
    const begun = performance.now();
    fill(object({ it: { type: 'string', pattern: '^(a+)+$' } }), { it: `${'a'.repeat(60)}!` });
    expect(performance.now() - begun).toBeLessThan(atThisLoad(1_000));
  });

  test('with names of the language keeps them as names', () => {
    const schema = JSON.parse(
      '{"type":"object","properties":{"__proto__":{"type":"string"},"constructor":{"type":"string"}}}',
    ) as unknown;
    const { value } = fill(schema, JSON.parse('{"__proto__":"a","constructor":"b"}'));
    expect(JSON.stringify(value)).toBe('{"__proto__":"a","constructor":"b"}');
  });
});

function big(): object {
  return Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`p${index}`, { type: 'string' }]));
}

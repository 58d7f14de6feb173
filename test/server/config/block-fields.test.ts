import { expect, test } from 'vitest';
import { defineBlock, type ServiceOf } from '../../../src/server/config/blocks/block.ts';
import {
  alwaysWritten,
  field,
  flagField,
  type KeysWithoutField,
  optionalField,
} from '../../../src/server/config/blocks/field.ts';
import { option, optionalWhole, trueOrFalse, whole } from '../../../src/server/config/option.ts';

const text = (meaning: string) => option<string>({ takes: 'text', meaning, read: String });
const count = (fallback: number) => whole({ min: 0, max: 9, default: fallback, meaning: 'A number.' });

const offer = {
  name: field('name', text('A name.')),
  'params.size': field('thing.size', count(3)),
  'params.depth': alwaysWritten('thing.depth', count(4)),
  'params.most': optionalField('thing.most', optionalWhole({ min: 0, max: 9, meaning: '', absent: 'none' })),
  loud: flagField('thing.loud', trueOrFalse({ meaning: '', optional: { text: 'false', fallback: false } }), true),
  low: count(0),
  high: count(0),
};

const THINGS = defineBlock({
  primitive: 'thing',
  offer,
  target: {},
  check: ({ low, high }, complain) => {
    if (low > high) complain('low', 'is more than high', 'at most high');
  },
  combine: ({ low, high }) => ({ thing: { range: `${low}-${high}` } }),
  separate: ({ thing: { range } }) => ({ low: Number(range[0]), high: Number(range[2]) }),
  writtenLast: ['name'],
  toTarget: () => null,
});

const silent = () => {};
const values = { name: 'a', 'params.size': 3, 'params.depth': 4, 'params.most': null, loud: false, low: 1, high: 2 };

test('the service has the fields of the rows, each in its group', () => {
  expect(THINGS.toService(values, silent)).toEqual({
    primitive: 'thing',
    name: 'a',
    thing: { size: 3, depth: 4, range: '1-2' },
  });
  expect(THINGS.toService({ ...values, 'params.most': 0, loud: true }, silent).thing).toEqual({
    size: 3,
    depth: 4,
    most: 0,
    loud: true,
    range: '1-2',
  });
});

test('the type of the service follows from the rows', () => {
  interface Thing {
    readonly primitive: 'thing';
    readonly name: string;
    readonly thing: {
      readonly size: number;
      readonly depth: number;
      readonly most?: number;
      readonly loud?: true;
      readonly range: string;
    };
  }
  // The compiler checks both directions.
  const made: Thing = THINGS.toService(values, silent);
  const given: ServiceOf<typeof THINGS> = made;
  expect(given).toBe(made);
});

test('a block has what differs from the default, its own keys before its tables', () => {
  const block = (changes: object) =>
    JSON.stringify(THINGS.toBlock(THINGS.toService({ ...values, ...changes }, silent)));
  expect(block({})).toBe('{"low":1,"high":2,"name":"a","params":{"depth":4}}');
  expect(block({ loud: true, 'params.size': 0, 'params.most': 0 })).toBe(
    '{"loud":true,"low":1,"high":2,"name":"a","params":{"size":0,"depth":4,"most":0}}',
  );
});

test('options that contradict each other are refused', () => {
  const said: string[] = [];
  THINGS.toService({ ...values, low: 3 }, (key, wrong, right) => said.push(`${key} ${wrong}: ${right}`));
  expect(said).toEqual(['low is more than high: at most high']);
});

test('the compiler knows the options that set no field, which `separate` must have', () => {
  const without: Readonly<Record<KeysWithoutField<typeof offer>, true>> = { low: true, high: true };
  expect(Object.keys(without)).toEqual(Object.keys(offer).filter((key) => key === 'low' || key === 'high'));
});

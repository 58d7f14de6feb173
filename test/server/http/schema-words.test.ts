import { Ajv } from 'ajv';
import { expect, test } from 'vitest';
import { mustBe } from '../../../src/server/http/errors.ts';

const ajv = new Ajv({ allowUnionTypes: true });

test.each([
  [{ type: 'number' }, 'x', 'must be a number'],
  [{ type: ['number', 'null'] }, 'x', 'must be a number or null'],
  [{ type: ['string', 'array', 'null'] }, 1, 'must be a string, an array or null'],
  [{ type: 'integer' }, 1.5, 'must be a whole number'],
  [{ type: 'boolean' }, 1, 'must be true or false'],
  [{ enum: ['a', null] }, 'b', 'must be one of a, null'],
  [{ const: 'a' }, 'b', 'must be "a"'],
  [{ type: 'string', minLength: 1 }, '', 'must not be empty'],
  [{ type: 'string', minLength: 3 }, 'a', 'must have at least 3 characters'],
  [{ type: 'string', maxLength: 1 }, 'ab', 'must have at most 1 character'],
  [{ type: 'array', minItems: 1 }, [], 'must not be empty'],
  [{ type: 'array', maxItems: 2 }, [1, 2, 3], 'must have at most 2 entries'],
  [{ type: 'array', uniqueItems: true }, [1, 1], 'must not have an entry twice'],
  [{ type: 'number', minimum: 0 }, -1, 'must be 0 or more'],
  [{ type: 'number', maximum: 9 }, 10, 'must be 9 or less'],
  [{ type: 'number', exclusiveMinimum: 0 }, 0, 'must be more than 0'],
  [{ type: 'string', pattern: '^a$' }, 'b', 'must match ^a$'],
])('%j of %j: %s', (schema, value, words) => {
  const validate = ajv.compile(schema);
  expect(validate(value)).toBe(false);
  expect(mustBe(validate.errors![0]!)).toBe(words);
});

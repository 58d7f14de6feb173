import { MUST_BE } from './schema-problem.ts';

/* Schemas that several fields of a request share. null counts as absent. */

/** The name of a service. */
export const nameSchema = { type: 'string', minLength: 1, maxLength: 256, pattern: '^[^\\u0000-\\u001f\\u007f]+$' };

export const numberField = (minimum: number, maximum: number, about: string) => ({
  type: ['number', 'null'],
  minimum,
  maximum,
  description: about,
  [MUST_BE]: `a number from ${minimum} to ${maximum}`,
});
export const tokensField = (about: string) => ({
  type: ['integer', 'null'],
  minimum: 1,
  maximum: Number.MAX_SAFE_INTEGER,
  description: about,
  [MUST_BE]: `an integer from 1 to ${Number.MAX_SAFE_INTEGER}`,
});
export const objectField = (about: string, rest: Record<string, unknown> = {}) => ({
  type: ['object', 'null'],
  description: about,
  [MUST_BE]: 'an object',
  ...rest,
});

import { createRequire } from 'node:module';
import type { AnySchema, ValidateFunction, Ajv, Options } from 'ajv';
import { MUST_BE, schemaError } from './errors.ts';

/* JSON schemas of requests: how they are checked, and what their fields share. */

/** The model in examples. The reference shows a model of this gateway instead. */
export const EXAMPLE_MODEL = 'demo/chat';

const compile = compileOnce(
  { allErrors: false, verbose: true, allowUnionTypes: true, strictRequired: false, strictTypes: false },
  (ajv) =>
    ajv
      .addKeyword({ keyword: MUST_BE, schemaType: 'string', valid: true })
      .addKeyword({ keyword: DOCUMENTED, schemaType: 'object', valid: true }),
);

/**
 * Makes a check of parsed JSON from the JSON schema that the route documents. The check returns its argument, typed, or
 * throws GatewayError `invalid_request` with the path of the field (`messages[2].role`) and the expected value.
 */
export function createCheck<T>(schema: AnySchema): (value: unknown) => T {
  // Compiled at the first check, so a command that starts a gateway for one request does not compile unused schemas.
  let compiled: ValidateFunction | null = null;
  return (value) => {
    const validate = (compiled ??= compile(schema));
    if (validate(value)) return value as T;
    throw schemaError(validate.errors!);
  };
}

/**
 * Compiles a schema when it is first needed. Schemas with the same text are compiled once in a process, even if it has
 * several gateways: the largest schema takes 30 ms, and Ajv keeps everything that it compiled. Ajv is loaded with the
 * first schema.
 */
export function compileOnce(
  options: Options,
  prepare: (ajv: Ajv) => unknown = () => {},
): (schema: AnySchema) => ValidateFunction {
  const compiled = new Map<string, ValidateFunction>();
  let ajv: Ajv | null = null;
  return (schema) => {
    const text = JSON.stringify(schema);
    let validate = compiled.get(text);
    if (!validate) {
      if (ajv === null) prepare((ajv = createAjv(options)));
      compiled.set(text, (validate = ajv.compile(schema)));
    }
    return validate;
  };
}

/** Loads Ajv synchronously, because a check cannot wait for an import(). */
function createAjv(options: Options): Ajv {
  const { Ajv: Validator } = createRequire(import.meta.url)('ajv') as typeof import('ajv');
  return new Validator(options);
}

/* Schemas that several fields of a request share. null counts as absent. */

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

/* What the reference says of a request beyond the keywords that validate it. */

/**
 * The annotation of a schema node with keywords that the code checks itself, because its errors say more than those of
 * a validator. The reference has them instead. `allOf` holds rules about the members of an object.
 */
export const DOCUMENTED = 'x-documented';

type Rule = Readonly<Record<string, unknown>>;

/** The object has this member, and it is not null: for most requests null is the same as absent. */
export const hasValue = (name: string): Rule => ({
  required: [name],
  properties: { [name]: { not: { const: null } } },
});

/** The object has at most one of these members. */
export const notTogether = (one: string, other: string): Rule => ({
  not: { allOf: [hasValue(one), hasValue(other)] },
});

/** The object has both of these members, or none of them. */
export const onlyTogether = (one: string, other: string): Rule => ({
  anyOf: [{ allOf: [hasValue(one), hasValue(other)] }, { not: { anyOf: [hasValue(one), hasValue(other)] } }],
});

/** If `condition` holds, `rule` holds too. */
export const onlyIf = (condition: Rule, rule: Rule): Rule => ({ anyOf: [{ not: condition }, rule] });

export const DOCUMENTED_USD = {
  minimum: 0,
  maximum: 1_000_000_000,
  pattern: '^[0-9]{1,9}(?:\\.[0-9]{1,6})?$',
} as const;

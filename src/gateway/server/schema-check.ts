import type { AnySchema, ValidateFunction } from 'ajv';
import { compileOnce } from './compile-once.ts';
import { MUST_BE, schemaError } from './schema-problem.ts';

const compile = compileOnce(
  { allErrors: false, verbose: true, allowUnionTypes: true, strictRequired: false, strictTypes: false },
  (ajv) => ajv.addKeyword({ keyword: MUST_BE, schemaType: 'string', valid: true }),
);

/**
 * Compiles a JSON schema, the one that the route documents, into a check of parsed JSON. The check returns its
 * argument, typed, or throws GatewayError `invalid_request` with the field as a path (`messages[2].role`) and what
 * would be right there.
 */
export function createCheck<T>(schema: AnySchema): (value: unknown) => T {
  // At the first check: a command that starts a gateway for one question pays for no schema that it does not use.
  let compiled: ValidateFunction | null = null;
  return (value) => {
    const validate = (compiled ??= compile(schema));
    if (validate(value)) return value as T;
    throw schemaError(validate.errors!);
  };
}

import type { AnySchema, ValidateFunction } from 'ajv';
import { compileOnce } from './compile-once.ts';
import { DOCUMENTED } from './documented.ts';
import { MUST_BE, schemaError } from './schema-problem.ts';

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

import { createRequire } from 'node:module';
import type { Ajv, AnySchema, Options, ValidateFunction } from 'ajv';

/**
 * Compiles a schema when it is first asked for. Schemas of the same text are compiled once in a process, however many
 * gateways it has: the largest takes 30 ms, and Ajv keeps each that it compiled. Ajv is loaded for the first schema.
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

/** A check cannot wait for an import. */
function createAjv(options: Options): Ajv {
  const { Ajv: Validator } = createRequire(import.meta.url)('ajv') as typeof import('ajv');
  return new Validator(options);
}

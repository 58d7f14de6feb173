import { createRequire } from 'node:module';
import type { Ajv, AnySchema, Options, ValidateFunction } from 'ajv';

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

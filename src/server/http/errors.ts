import type { FastifyError, FastifyRequest } from 'fastify';
import { CROWDED, DatabaseError } from '#store';
import { GatewayError } from '#errors';
import { printable } from '#security';
import { isExactNumber } from '#wire';
import { LedgerUnavailable, LOST } from '#billing';
import { nearest } from '#config';

/** PostgreSQL's SQLSTATE for a text with U+0000, which the embedded engine stores. In JSON, rowsParam replaces it. */
const UNSTORABLE_CHARACTER = '22021';

/** Whether the disk of the database is full, so that nothing can be written. */
const isFull = (error: unknown): boolean =>
  error instanceof DatabaseError
    ? error.full
    : error instanceof LedgerUnavailable && error.cause instanceof DatabaseError && error.cause.full;

/** Whether the database answers, and the request waited in vain behind others. */
function isBusy(error: unknown): boolean {
  if (error instanceof DatabaseError) return error.busy;
  const cause = error instanceof LedgerUnavailable ? error.cause : null;
  return cause instanceof DatabaseError && (cause.busy || (!cause.unavailable && cause.code !== LOST));
}

const BUSY =
  'Too many requests use the database or the same account at the moment, and this one waited in vain: retry in a few seconds. GET /api/v1/generation shows whether a call that had begun was charged';

const FULL =
  'The disk of the gateway is full, so it takes no calls: retry later. GET /api/v1/generation shows whether a call that had begun was charged';

const FULL_RETRY_S = 30;
const BUSY_RETRY_S = 3;
const CROWDED_RETRY_S = 2;

/**
 * Converts any thrown value to a GatewayError. An unknown error becomes `internal` and reveals nothing. `bodyTypes`:
 * the media types that the route takes, for an error about the type of a body.
 */
export function toGatewayError(error: unknown, bodyTypes: readonly string[] = [JSON_TYPE]): GatewayError {
  if (error instanceof GatewayError) return error;
  if (isFull(error)) return new GatewayError('service_unavailable', FULL, { retryAfterS: FULL_RETRY_S, cause: error });
  if (error instanceof DatabaseError && error.code === CROWDED)
    return new GatewayError('rate_limit_exceeded', `${error.message}. Retry later`, {
      retryAfterS: CROWDED_RETRY_S,
      cause: error,
    });
  if (isBusy(error)) return new GatewayError('service_unavailable', BUSY, { retryAfterS: BUSY_RETRY_S, cause: error });
  if (error instanceof LedgerUnavailable || (error instanceof DatabaseError && error.unavailable)) {
    return new GatewayError(
      'service_unavailable',
      'The ledger is not reachable at the moment: retry shortly. GET /api/v1/generation shows whether a call that had begun was charged',
      { retryAfterS: 2, cause: error },
    );
  }
  if (error instanceof DatabaseError && error.code === UNSTORABLE_CHARACTER) {
    return new GatewayError(
      'invalid_request',
      'The request contains the character U+0000, which cannot be stored: leave it out',
      { cause: error },
    );
  }
  const { code, statusCode, validation, validationContext, message } = (error ?? {}) as Partial<FastifyError>;
  if (validation) return schemaError(validation, validationContext === 'body' ? 'The body' : 'The address');
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new GatewayError(
        'payload_too_large',
        'The request body is larger than this endpoint takes: see limits.chat_body_bytes_max, limits.media_body_bytes_max and limits.body_bytes_max',
        { cause: error },
      );
    case 'FST_ERR_BAD_URL':
      return new GatewayError(
        'invalid_request',
        'The address is not valid: it has a percent sign that encodes no character',
        { cause: error },
      );
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
    case 'FST_ERR_CTP_EMPTY_TYPE':
      return new GatewayError('invalid_request', `Send the body as ${bodyTypes.map(inWords).join(', or as ')}`, {
        cause: error,
      });
    default:
      if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
        return new GatewayError('invalid_request', message ?? 'The request is not valid', { cause: error });
      }
      return new GatewayError('internal', 'Internal error', { cause: error });
  }
}

const JSON_TYPE = 'application/json';

const inWords = (type: string): string => `${type === JSON_TYPE ? 'JSON' : 'a form'} with content-type: ${type}`;

interface DescribedBody {
  readonly consumes?: readonly string[];
  readonly body?: { readonly content?: object };
}

/** The media types of the body that a route describes: those of `consumes`, or those of its body. Default: JSON. */
export function bodyTypesOf({ routeOptions: { schema } }: Pick<FastifyRequest, 'routeOptions'>): readonly string[] {
  const { consumes, body } = (schema ?? {}) as DescribedBody;
  return consumes ?? (body?.content ? Object.keys(body.content) : [JSON_TYPE]);
}

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
  const came = words.startsWith('must be ') && words === right ? `, not ${printed(data)}` : '';
  return new GatewayError('invalid_request', `${at || place} ${words}${came}`, at ? { param: at } : {});
}

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

function printed(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? 'an empty array' : `an array of ${value.length}`;
  if (value === null) return 'null';
  if (isExactNumber(value)) return numberWords(value.rawJSON);
  if (typeof value === 'object') return 'an object';
  if (typeof value === 'string') return `${JSON.stringify(printable(value, 40))}${value.length > 40 ? '…' : ''}`;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : 'nothing';
}

const numberWords = (text: string): string =>
  `${printable(text, 40)}, a number that is too ${text.startsWith('-') ? 'small' : 'large'}`;

/**
 * Describes the expected value, to follow the name of a field: "must be a number or null". The validator's own messages
 * ("must NOT have fewer than 1 characters") are hard to read.
 */
export function mustBe({
  keyword,
  params,
}: {
  readonly keyword: string;
  readonly params: Readonly<Record<string, unknown>>;
}): string {
  const limit = Number(params['limit']);
  switch (keyword) {
    case 'type':
      return `must be ${either(
        [params['type']]
          .flat()
          .flatMap((type) => String(type).split(','))
          .map(typeWords),
      )}`;
    case 'enum':
      return `must be one of ${(params['allowedValues'] as readonly unknown[]).map(String).join(', ')}`;
    case 'const':
      return `must be ${JSON.stringify(params['allowedValue'])}`;
    case 'minLength':
      return limit === 1 ? 'must not be empty' : `must have at least ${limit} characters`;
    case 'maxLength':
      return `must have at most ${counted(limit, 'character')}`;
    case 'minItems':
      return limit === 1 ? 'must not be empty' : `must have at least ${limit} entries`;
    case 'maxItems':
      return `must have at most ${limit} ${limit === 1 ? 'entry' : 'entries'}`;
    case 'uniqueItems':
      return 'must not have an entry twice';
    case 'maxProperties':
      return `must have at most ${counted(limit, 'member')}`;
    case 'minimum':
      return `must be ${limit} or more`;
    case 'maximum':
      return `must be ${limit} or less`;
    case 'exclusiveMinimum':
      return `must be more than ${limit}`;
    case 'exclusiveMaximum':
      return `must be less than ${limit}`;
    case 'multipleOf':
      return `must be a multiple of ${String(params['multipleOf'])}`;
    case 'format':
      return `must be of the form ${String(params['format'])}`;
    case 'pattern':
      return `must match ${String(params['pattern'])}`;
    default:
      return 'is not valid';
  }
}

const TYPES: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
  null: 'null',
};
const typeWords = (type: string): string => TYPES[type] ?? type;

const either = (words: readonly string[]): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)!}`;

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

/**
 * The error text for an unknown member of an object, with a suggestion if a known member is similar. `param`: the
 * member's path.
 */
export function unknownMember(param: string, known: readonly string[]): string {
  if (known.length === 0) return `${param} is not known here: this request takes no members in its body`;
  const suggestion = nearest(param.split('.').at(-1)!, known);
  return `${param} is not known here${suggestion === null ? '.' : `; did you mean ${suggestion}?`} Known are ${known.join(', ')}`;
}

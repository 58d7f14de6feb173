import type { FastifyInstance } from 'fastify';
import { isObject, type JsonObject, membersOf, splice, withMembers } from '#wire';
import type { RequestMessage } from '#json-rpc';
import { formatUsd } from '#billing/amounts';
import { lowestCap, MAX_COST_HEADER, MAX_COST_META, parseIdempotencyKey } from '#call';
import { badParams } from './errors-rpc.ts';
import type { InnerRequest } from './inner-request.ts';

export interface Param {
  readonly name: string;
  readonly description: string;
  readonly required?: boolean;
  readonly schema: JsonObject;
}

/** A method that a route of this gateway answers. It is offered only if the server has the route. */
export interface RpcMethod {
  readonly name: string;
  readonly summary: string;
  readonly route: { readonly verb: 'GET' | 'POST'; readonly url: string };
  /** The path of the description of its answer. Default: that of the route. */
  readonly describedAt?: string;
  readonly open?: true;
  readonly billed?: true;
  /** Parameters that are missing in the description of the route. */
  readonly params?: readonly Param[];
  /** The part of the route that describes the parameters: its query or its body. Absent if `params` has all of them. */
  readonly described?: 'query' | 'body';
  /** The format of the route's answer: an HTTP result, or JSON-RPC. */
  readonly answers: 'http' | 'wire';
  /** Throws GatewayError `invalid_request`. */
  toInner(request: RequestMessage): InnerRequest;
}

/** The only method that no route answers. */
export const DISCOVER = 'rpc.discover';

export type HasRoute = FastifyInstance['hasRoute'];

export const EMPTY: JsonObject = {};

export const paramsOf = ({ params = EMPTY }: RequestMessage): JsonObject => params;

/** The text of the parameters as the client wrote it, without the members in `names`. */
export function paramsWithout({ text, members }: RequestMessage, names: readonly string[]): string {
  const span = members.get('params');
  if (!span) return '{}';
  const there = membersOf(text, span.start);
  const gone = names.filter((name) => there.has(name));
  const written = text.slice(span.start, span.end);
  if (gone.length === 0) return written;
  return splice(written, [
    withMembers(written, { start: 0, end: written.length }, Object.fromEntries(gone.map((name) => [name, null]))),
  ]);
}

/**
 * Encodes a name for a path. Throws GatewayError `invalid_request` for an invalid name. Segments of dots alone are
 * refused, because they would lead to another path.
 */
export function pathOf(name: unknown, param: string): string {
  if (typeof name !== 'string' || name === '' || name.length > NAME_CHARS_MAX)
    throw badParams(`${param} must be a name`, param);
  const parts = name.split('/');
  if (parts.some((part) => part === '' || part === '.' || part === '..'))
    throw badParams(`${param} is not a name: ${JSON.stringify(name)}`, param);
  return parts.map(encodeURIComponent).join('/');
}

const NAME_CHARS_MAX = 512;

export const KEY = 'tollgate/idempotency-key';
export const RECEIPT = 'tollgate/receipt';
export const PAYMENT = 'x402/payment';

/**
 * Converts the gateway's members of `params._meta` to headers. `header`: the Idempotency-Key of the HTTP request.
 * `caps`: the values of its `x-max-cost`. Throws GatewayError `invalid_request`.
 */
export function ownHeaders(
  request: RequestMessage,
  header: string | null,
  caps: readonly string[] = [],
): Record<string, string> {
  const meta = paramsOf(request)['_meta'];
  const fields = isObject(meta) ? meta : EMPTY;
  const key = fields[KEY] === undefined ? header : parseIdempotencyKey(fields[KEY]);
  return {
    ...(key === null ? {} : { 'idempotency-key': key }),
    ...capHeader(fields[MAX_COST_META], caps),
    ...(fields[RECEIPT] === true ? { 'x-receipt': '1' } : {}),
    ...paymentOf(fields[PAYMENT]),
  };
}

/**
 * The header with the lower cap of entry and whole request. If the entry has no cap, the header of the request is
 * passed on unchanged.
 */
function capHeader(own: unknown, caps: readonly string[]): Record<string, string> {
  if (own === undefined || own === null) return {};
  const cap = lowestCap([[MAX_COST_META, own], ...caps.map((text) => [MAX_COST_HEADER, text] as const)]);
  return cap === null ? {} : { [MAX_COST_HEADER]: formatUsd(cap.amount) };
}

/** Encodes a payment as the header that HTTP routes read. They report an invalid payment. */
const paymentOf = (payment: unknown): Record<string, string> =>
  payment === undefined ? {} : { 'payment-signature': Buffer.from(JSON.stringify(payment)).toString('base64') };

export const META_PARAM: Param = {
  name: '_meta',
  description: `\`${KEY}\` makes a repetition of the call answer the same without a second charge; \`${MAX_COST_META}\` is the most USD that the call may cost; \`${RECEIPT}: true\` asks for a signed receipt; \`${PAYMENT}\` is an x402 payment for the call.`,
  schema: {
    type: 'object',
    properties: {
      [KEY]: { type: 'string', minLength: 1, maxLength: 255 },
      [MAX_COST_META]: { type: ['string', 'number'] },
      [RECEIPT]: { type: 'boolean' },
      [PAYMENT]: { type: 'object' },
    },
  },
};

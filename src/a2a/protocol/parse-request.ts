import type { FastifyRequest } from 'fastify';
import { type JsonObject, isObject, NotUtf8, type ReadText, readJsonText, removeAt } from '#wire';
import { GatewayError } from '#errors';
import { parseMessage, readClientMessage, messageFault } from '#json-rpc';
import type { Caller } from '#accounts';
import type { PaymentAttempt } from '#payments';
import type { RequestedQuote } from '#call';
import { nearestHint } from '#catalog';
import type { Config } from '#config';
import type { CardOrigin } from '../cards/card-pages.ts';
import {
  type A2aOperation,
  type A2aVersion,
  findMethod,
  METHODS,
  operationOf,
  readVersion,
  VERSION_HEADER,
  versionQuery,
  type VersionReading,
} from '../wire/protocol.ts';
import { withCanonicalNames } from './request-fields.ts';
import { A2aError, type A2aBinding } from '../wire/errors.ts';
import { isBareBody, sendFromBare } from '../wire/bare-body.ts';
import { exactValue } from '../wire/edit-json.ts';
import { legacyRestParams } from '../wire/rest-legacy.ts';
import { restParams, matchRest, type RestMatch, type RestVerb } from '../wire/rest.ts';
import type { Extensions } from './extensions.ts';

/* Reads a request of any version and binding: its address, its version, its operation and its parameters. */

/** One request of a client for one agent, from any binding. */
export interface A2aRequest {
  readonly operation: A2aOperation;
  readonly version: A2aVersion;
  /** The called name: a service, which may be pinned or have a suffix, or a model or tool behind a bridge. */
  readonly service: string;
  /** The parameters in the form of JSON-RPC, in the client's version. */
  readonly params: JsonObject;
  /** The same as JSON text: the client's own text where it has this form. */
  readonly paramsText: string;
  readonly caller: Caller;
  /** The payment in the message; null or absent for none. */
  readonly payment?: PaymentAttempt | null;
  readonly requestId: string;
  readonly traceparent: string | null;
  readonly wantsReceipt: boolean;
  /** The header with the cap for the cost of the whole run, unchanged; null without one. */
  readonly maxCost: string | readonly string[] | null;
  /** The quote that the call is charged by; null or absent for none. */
  readonly quote?: RequestedQuote | null;
  /** The extensions that the client activates; null for none. */
  readonly extensions: Extensions | null;
  readonly origin: () => CardOrigin | null;
  /** The id of the client's request, as text for the call's span; null on HTTP+JSON, or if the request has none. */
  readonly rpcId: string | null;
}

interface ParsedRequest {
  readonly ask: Omit<
    A2aRequest,
    'caller' | 'payment' | 'requestId' | 'traceparent' | 'wantsReceipt' | 'maxCost' | 'extensions' | 'origin'
  >;
  readonly binding: A2aBinding;
  /** The id as JSON text on JSON-RPC; `null` otherwise. */
  readonly idText: string;
  /** The body is a bare message. */
  readonly bare: boolean;
}

/** A refusal of a request whose id and version may be known, so that the error can carry them. */
export class Misread extends Error {
  readonly fault: unknown;
  readonly idText: string;
  readonly version: A2aVersion;
  constructor(fault: unknown, idText: string, version: A2aVersion) {
    super('the request cannot be understood', { cause: fault });
    this.fault = fault;
    this.idText = idText;
    this.version = version;
  }
}

/** Parses a request of any version and binding. Rejects with Misread, A2aError or GatewayError if it is not valid. */
export async function parseRequest(
  request: FastifyRequest,
  address: Address,
  limits: Pick<Config['limits'], 'jsonDepthMax' | 'jsonKeysMax'>,
): Promise<ParsedRequest> {
  const reading = readVersionOf(request);
  if (reading.version === undefined) {
    const idText = address.kind === 'rpc' ? await idOfBody(request.body, limits) : 'null';
    throw new Misread(new A2aError('VersionNotSupported', reading.fault), idText, '1.0');
  }
  if (address.kind === 'none')
    throw new GatewayError(
      'invalid_model',
      'This address does not exist. POST to /a2a/<agent>, or use the routes of HTTP+JSON below it, such as /message:send or /tasks/<id>',
    );
  if (address.kind === 'verb') {
    const allow = address.allowed.join(', ');
    throw new GatewayError('method_not_allowed', `This address does not take ${request.method}. It takes ${allow}`, {
      headers: { allow },
    });
  }
  const read = await readBody(request.body, limits);
  if (address.kind === 'rest') return parseRest(address, read, request.query);
  return parseRpc(address.service, read, saysVersion(request) ? reading.version : null);
}

async function readBody(
  body: unknown,
  limits: Pick<Config['limits'], 'jsonDepthMax' | 'jsonKeysMax'>,
): Promise<ReadText> {
  if (body === undefined || body === null) return { text: '' };
  try {
    return await readJsonText(body as Buffer, limits);
  } catch (error) {
    throw error instanceof NotUtf8 ? new A2aError('ParseError', error.message) : error;
  }
}

function parseRest(
  { service, version, match }: Extract<Address, { kind: 'rest' }>,
  { text, value: parsed }: ReadText,
  query: unknown,
): ParsedRequest {
  let body = parsed;
  if (text.trim() !== '') {
    try {
      body ??= JSON.parse(text);
    } catch {
      throw new A2aError('ParseError', messageFault(text).message);
    }
  }
  const paramsOf = (value: unknown): JsonObject => {
    const input = {
      query: query as Readonly<Record<string, unknown>>,
      body: isObject(value) ? withCanonicalNames(value, text) : value,
    };
    const params = version === '0.3' ? legacyRestParams(match, input) : restParams(match, input);
    if (typeof params === 'string') throw new A2aError('InvalidParams', params);
    return params;
  };
  const params = paramsOf(body);
  const exact = exactValue(text, body);
  const paramsText = JSON.stringify(exact === body ? params : paramsOf(exact));
  const ask = { operation: match.operation, version, service, params, paramsText, rpcId: null };
  return { ask, binding: 'rest', idText: 'null', bare: false };
}

const EMPTY: JsonObject = {};

/** `version` is null if the client named none. Then the method decides, and for unknown methods it is 0.3. */
function parseRpc(service: string, { text, value }: ReadText, version: A2aVersion | null): ParsedRequest {
  // The parameters are read later, when their version is known.
  const message = readClientMessage(text, () => null, value);
  if (message === undefined) throw noRequest(text, undefined, version ?? '0.3');
  if (message?.kind === 'ambiguous')
    throw new Misread(new A2aError('InvalidRequest', message.fault.message), message.idText, version ?? '0.3');
  if (message === null) {
    const body = value ?? (JSON.parse(text) as unknown);
    if (isObject(body) && body['id'] === null && messageFault(text, body).param === 'id')
      return parseRpc(service, { text: removeAt(text, ['id']) }, version);
    if (!isBareBody(body)) throw noRequest(text, body, version ?? '0.3');
    const params = sendFromBare(withCanonicalNames(body, text));
    const ask = {
      operation: 'send',
      version: '1.0',
      service,
      params,
      paramsText: JSON.stringify(sendFromBare(withCanonicalNames(exactValue(text, body) as JsonObject, text))),
      rpcId: null,
    } as const;
    return { ask, binding: 'rest', idText: 'null', bare: true };
  }
  if (message.kind === 'response')
    throw new A2aError(
      'InvalidRequest',
      'A response cannot be posted here: send a JSON-RPC 2.0 request, with a method',
    );
  const { method, params: sent = EMPTY, members, text: envelope } = message;
  // A2A has no notifications, and its official servers answer a request without an id.
  const idText = message.kind === 'request' ? message.idText : 'null';
  const match = version === null ? findMethod(method) : null;
  const spoken = match?.version ?? version ?? '0.3';
  const operation = operationOf(spoken, method);
  if (operation === null) {
    const other = findMethod(method);
    const hint =
      other === null
        ? nearMethod(spoken, method)
        : `. The method belongs to A2A ${other.version}, but the request has A2A-Version ${spoken}`;
    throw new Misread(
      new A2aError('MethodNotFound', `There is no method ${JSON.stringify(method.slice(0, 100))}${hint}`),
      idText,
      spoken,
    );
  }
  const span = members.get('params');
  const sentText = span ? envelope.slice(span.start, span.end) : '{}';
  let params: JsonObject;
  try {
    params = withCanonicalNames(sent, sentText);
  } catch (error) {
    throw new Misread(error, idText, spoken);
  }
  const paramsText =
    params === sent ? sentText : JSON.stringify(withCanonicalNames(exactValue(sentText, sent) as JsonObject, sentText));
  const rpcId = message.kind === 'request' ? idText.replace(/^"(.*)"$/, '$1').slice(0, 128) : null;
  return {
    ask: { operation, version: spoken, service, params, paramsText, rpcId },
    binding: 'jsonrpc',
    idText,
    bare: false,
  };
}

function noRequest(text: string, parsed: unknown, version: A2aVersion): Misread {
  if (/^[\t\n\r ]*\[/.test(text))
    return new Misread(
      new A2aError('InvalidRequest', 'A2A has no batches. Send batches to POST /api/v1/rpc'),
      'null',
      version,
    );
  const { kind, message, param, idText } = messageFault(text, parsed);
  // A2A's test kit expects this error for params of any other type, although to JSON-RPC a text there is no request.
  const name = param === 'params' ? 'InvalidParams' : FAULTS[kind];
  return new Misread(new A2aError(name, message, param === null ? undefined : { param }), idText ?? 'null', version);
}

function nearMethod(version: A2aVersion, method: string): string {
  const hint = nearestHint(method, Object.values(METHODS[version]));
  return hint === '' ? '' : `. ${hint}`;
}

const FAULTS = { parse: 'ParseError', request: 'InvalidRequest', params: 'InvalidParams' } as const;

/** The id of a request that is refused before parsing, for its error; `null` if it has none. */
async function idOfBody(...body: Parameters<typeof readBody>): Promise<string> {
  try {
    const { text, value } = await readBody(...body);
    const message = parseMessage(text, value);
    return message?.kind === 'request' ? message.idText : (messageFault(text, value).idText ?? 'null');
  } catch {
    return 'null';
  }
}

/** The version that a request names in its header or query; the default version if it names none. */
export const readVersionOf = (request: FastifyRequest): VersionReading =>
  readVersion(request.headers[VERSION_HEADER], versionQuery(request));

export const saysVersion = (request: FastifyRequest): boolean =>
  request.headers[VERSION_HEADER] !== undefined || versionQuery(request) !== undefined;

/** Finds the kind of the address of a request. `version`: null if the request names none. */
export function addressOf(
  { method, url }: FastifyRequest,
  prefix: string,
  version: A2aVersion | null,
  isService: (name: string) => boolean,
): Address {
  // Percent-encoded, without the query.
  const path = url.split('?', 1)[0]!.slice(prefix.length + '/a2a'.length);
  return readAddress(method, path, version, isService);
}

/**
 * The kind of an address below `/a2a`: JSON-RPC (or a bare message) to a service, or a route of HTTP+JSON. An empty
 * service means the address of all agents.
 */
export type Address =
  | { readonly kind: 'rpc'; readonly service: string }
  | { readonly kind: 'rest'; readonly service: string; readonly version: A2aVersion; readonly match: RestMatch }
  /** The route or agent exists, but does not take this verb. */
  | {
      readonly kind: 'verb';
      readonly service: string;
      readonly version: A2aVersion;
      readonly allowed: readonly RestVerb[];
    }
  | { readonly kind: 'none' };

/**
 * Reads an address. `path` is the part after `/a2a`, percent-encoded: empty, or with a leading slash. Names of services
 * contain slashes, so the longest known name counts. `version` is the one that the client named. null: it named none,
 * and the route decides.
 */
// oxlint-disable-next-line complexity -- the branches are the addresses of two versions and two bindings
export function readAddress(
  verb: string,
  path: string,
  version: A2aVersion | null,
  isService: (name: string) => boolean,
): Address {
  const whole = decode(path.replace(/\/$/, '').slice(1));
  const posted = verb === 'POST';
  if (path === '' || path === '/')
    return posted
      ? { kind: 'rpc', service: '' }
      : { kind: 'verb', service: '', version: version ?? '0.3', allowed: POST };
  const known = whole !== null && isService(whole);
  const address: Address | null = posted && known ? { kind: 'rpc', service: whole } : null;
  // The name of this service looks like a route. The routes of other agents are tried first, so that it cannot take
  // their requests.
  if (address !== null && !ROUTE_LIKE.test(path)) return address;
  const places: PathSplit[] = [];
  const unknown: PathSplit[] = [];
  for (
    let at = path.lastIndexOf('/'), pieces = 0;
    at >= 0 && pieces < PIECES_MAX;
    at = at === 0 ? -1 : path.lastIndexOf('/', at - 1), pieces += 1
  ) {
    const service = at > SERVICE_CHARS_MAX ? null : decode(path.slice(1, at));
    if (service !== null) (at === 0 || isService(service) ? places : unknown).push({ at, service });
  }
  let wrong: Address | null = null;
  // A request without a version matches the routes of 0.3 first, before the longer name of a service whose end looks
  // like a route of 1.0.
  for (const one of version === null ? VERSIONS : [version])
    for (const { at, service } of places) {
      const match = matchRest(one, verb, path.slice(at));
      if ('operation' in match) return { kind: 'rest', service, version: one, match };
      if (match.allowed.length > 0) wrong ??= { kind: 'verb', service, version: one, allowed: match.allowed };
    }
  if (address !== null) return address;
  if (wrong !== null) return wrong;
  if (known) return { kind: 'verb', service: whole, version: version ?? '0.3', allowed: POST };
  // An address below an agent that looks like a route of HTTP+JSON is a misspelt route, not the name of another agent.
  const end = path.slice(path.lastIndexOf('/') + 1);
  const misspelt = /:./.test(end) && places.some(({ at }) => at > 0);
  // A route of an agent that does not exist. So the client reads the error in the form of its binding.
  if (!misspelt)
    for (const one of version === null ? VERSIONS : [version])
      for (const { at, service } of unknown) {
        const match = matchRest(one, verb, path.slice(at));
        if ('operation' in match) return { kind: 'rest', service, version: one, match };
      }
  return posted && !misspelt ? { kind: 'rpc', service: whole ?? path.slice(1) } : { kind: 'none' };
}

/** A way to divide a path: where the route begins, and the service before it. */
interface PathSplit {
  readonly at: number;
  readonly service: string;
}

const POST = ['POST'] as const;
const VERSIONS = ['0.3', '1.0'] as const;
/** Every route that takes POST looks like this. */
const ROUTE_LIKE = /\/(?:message:|tasks\/)/;

/**
 * The pieces of the longest route, with a trailing slash. The bound is needed because an address may consist of slashes
 * only.
 */
const PIECES_MAX = 7;
/** Counts percent-encoded characters. Names of services are shorter. */
const SERVICE_CHARS_MAX = 1_024;

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

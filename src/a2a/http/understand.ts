import type { FastifyRequest } from 'fastify';
import { GatewayError, isObject, jsonText, NotUtf8, parseMessage, readClientMessage, type JsonObject } from '#wire';
import type { Config } from '#config';
import { messageFault, nearestHint } from '#gateway';
import type { Address } from './address.ts';
import type { A2aRequest } from './a2a-request.ts';
import { withCanonicalNames } from './canonical-names.ts';
import { A2aError, type A2aBinding } from '../wire/errors.ts';
import { isBareBody, sendFromBare } from '../wire/bare-body.ts';
import { exactValue } from '../wire/edit-json.ts';
import { findMethod, METHODS, operationOf, type A2aVersion, type VersionReading } from '../wire/protocol.ts';
import { legacyRestParams } from '../wire/rest-legacy.ts';
import { restParams } from '../wire/rest.ts';

/** A parsed request. */
interface Understood {
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

interface ToUnderstand {
  readonly address: Address;
  readonly request: Pick<FastifyRequest, 'method' | 'body' | 'query'>;
  /** The version that the request names or the default, and whether the request names one. */
  readonly asked: VersionReading;
  readonly said: boolean;
  readonly limits: Pick<Config['limits'], 'jsonDepthMax' | 'jsonKeysMax'>;
}

/** Parses a request of any version and binding. Throws Misread, A2aError or GatewayError if it is not valid. */
export function understand({ address, request, asked, said, limits }: ToUnderstand): Understood {
  if (asked.version === undefined) {
    const idText = address.kind === 'rpc' ? idOfBody(request.body) : 'null';
    throw new Misread(new A2aError('VersionNotSupported', asked.fault), idText, '1.0');
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
  const text = textOf(request.body, limits);
  if (address.kind === 'rest') return understandRest(address, text, request.query);
  return understandRpc(address.service, text, said ? asked.version : null);
}

function textOf(body: unknown, limits: ToUnderstand['limits']): string {
  if (body === undefined || body === null) return '';
  try {
    return jsonText(body as Buffer, limits);
  } catch (error) {
    throw error instanceof NotUtf8 ? new A2aError('ParseError', error.message) : error;
  }
}

function understandRest(
  { service, version, match }: Extract<Address, { kind: 'rest' }>,
  text: string,
  query: unknown,
): Understood {
  let body: unknown;
  if (text.trim() !== '') {
    try {
      body = JSON.parse(text);
    } catch {
      throw new A2aError('ParseError', messageFault(text).message);
    }
  }
  const paramsOf = (given: unknown): JsonObject => {
    const input = {
      query: query as Readonly<Record<string, unknown>>,
      body: isObject(given) ? withCanonicalNames(given, text) : given,
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
function understandRpc(service: string, text: string, version: A2aVersion | null): Understood {
  // The parameters are read later, when their version is known.
  const message = readClientMessage(text, () => null);
  if (message === undefined) throw noRequest(text, version ?? '0.3');
  if (message?.kind === 'ambiguous')
    throw new Misread(new A2aError('InvalidRequest', message.fault.message), message.idText, version ?? '0.3');
  if (message === null) {
    const body: unknown = JSON.parse(text);
    if (!isBareBody(body)) throw noRequest(text, version ?? '0.3');
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
  if (message.kind !== 'request')
    throw new A2aError(
      'InvalidRequest',
      'The body must be a JSON-RPC 2.0 request with an id, because A2A has no notifications',
    );
  const { method, params: sent = EMPTY, idText, members, text: envelope } = message;
  const found = version === null ? findMethod(method) : null;
  const spoken = found?.version ?? version ?? '0.3';
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
  const rpcId = idText.replace(/^"(.*)"$/, '$1').slice(0, 128);
  return {
    ask: { operation, version: spoken, service, params, paramsText, rpcId },
    binding: 'jsonrpc',
    idText,
    bare: false,
  };
}

/** The reason why a body is not a request of JSON-RPC 2.0. */
function noRequest(text: string, version: A2aVersion): Misread {
  if (/^[\t\n\r ]*\[/.test(text))
    return new Misread(
      new A2aError('InvalidRequest', 'A2A has no batches. Send batches to POST /api/v1/rpc'),
      'null',
      version,
    );
  const { kind, message, param, idText } = messageFault(text);
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
function idOfBody(body: unknown): string {
  try {
    const text = (body as Buffer).toString('utf8');
    const message = parseMessage(text);
    return message?.kind === 'request' ? message.idText : (messageFault(text).idText ?? 'null');
  } catch {
    return 'null';
  }
}

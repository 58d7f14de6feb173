import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import {
  createAnswer,
  createHttpSink,
  GatewayError,
  isObject,
  jsonText,
  MAX_COST_HEADER,
  needsCredential,
  parseMessage,
  readClientMessage,
  receiptHeaders,
  requireAdmission,
  type Config,
  type JsonObject,
  type KeepAlive,
  type Payments,
  type PaymentSlip,
  type Pipeline,
} from '#gateway';
import { readAddress, type Address } from './address.ts';
import type { Ask } from './ask.ts';
import type { CardOrigin } from './cards/card-pages.ts';
import { describeDoor } from './described-door.ts';
import type { Door } from './door.ts';
import { createOut } from './out.ts';
import { X402_EXTENSION } from './cards/rewrite-card.ts';
import { paidMessage, splitExtensions } from './paid-message.ts';
import { refusePrivateFiles } from './private-files.ts';
import { refuseLookAlikes, refuseRepeatedKeys } from './unambiguous.ts';
import { A2aError } from './wire/a2a-error.ts';
import { isBareBody, sendFromBare } from './wire/bare-body.ts';
import { REST_MEDIA_TYPES, toA2aError, type A2aBinding } from './wire/errors-a2a.ts';
import { findMethod, isStreaming, operationOf, type Operation } from './wire/methods.ts';
import { legacyRestParams } from './wire/rest-legacy.ts';
import { restParams } from './wire/rest-params.ts';
import { readVersion, VERSION_HEADER, type A2aVersion } from './wire/version.ts';

export interface A2aRoutesDeps {
  readonly admit: Pipeline['admit'];
  readonly door: Door;
  readonly payments: Payments;
  /** Whether there is an agent of this name, or a bridge to what is called so. */
  readonly isService: (name: string) => boolean;
  readonly limits: Pick<Config['limits'], 'bodyBytesMax' | 'jsonDepthMax' | 'jsonKeysMax' | 'clientStallMs'>;
  readonly receipts: Config['billing']['receipts'];
  /** Files may lie on hosts of private networks: for development. */
  readonly allowPrivate: boolean;
  readonly keepAlive: KeepAlive;
  readonly origin: (request: FastifyRequest) => CardOrigin | null;
  readonly onError: (error: unknown, request: { readonly id: string; readonly method: string; readonly url: string }) => void;
}

/** One request as it was understood. */
interface Understood {
  readonly ask: Omit<Ask, 'caller' | 'payment' | 'requestId' | 'traceparent' | 'wantsReceipt' | 'maxCost' | 'extensions' | 'origin'>;
  readonly binding: A2aBinding;
  readonly idText: string;
  readonly bare: boolean;
}

/** A request that is refused although its id is known. */
class Misread extends Error {
  readonly fault: A2aError;
  readonly idText: string;
  readonly version: A2aVersion;
  constructor(fault: A2aError, idText: string, version: A2aVersion) {
    super(fault.message);
    this.fault = fault;
    this.idText = idText;
    this.version = version;
  }
}

/** `/a2a` (all agents) and `/a2a/{service}`: both versions by JSON-RPC and HTTP+JSON, and the bare message. Register it at the root and under `/api/v1`. */
export function a2aRoutes(deps: A2aRoutesDeps): FastifyPluginAsync {
  const { limits, door, payments, keepAlive } = deps;

  return async (app) => {
    const admissionOf = requireAdmission(app, deps.admit, true);
    // What a message must be, the protocol says in its own words.
    app.setValidatorCompiler(() => () => true);
    app.removeAllContentTypeParsers();
    const keep = { parseAs: 'buffer', bodyLimit: limits.bodyBytesMax } as const;
    app.addContentTypeParser(['application/json', 'application/a2a+json'], keep, (_request, body, done) => done(null, body));

    app.setErrorHandler((error, request, reply) => {
      const { version = '1.0' } = readVersion(request.headers[VERSION_HEADER], versionQuery(request));
      const address = readAddress(request.method, pathOf(request, app.prefix), version, deps.isService);
      const binding = address.kind === 'rpc' ? 'jsonrpc' : 'rest';
      const { status, headers, text } = toA2aError(error, { version, binding });
      if (status >= 500) deps.onError(error, request);
      void reply
        .code(status)
        .headers(headers)
        .type(binding === 'rest' ? REST_MEDIA_TYPES[version] : 'application/json')
        .send(text);
    });

    async function answer(request: FastifyRequest, reply: FastifyReply): Promise<void> {
      const asked = readVersion(request.headers[VERSION_HEADER], versionQuery(request));
      const said = request.headers[VERSION_HEADER] !== undefined || versionQuery(request) !== undefined;
      const address = readAddress(request.method, pathOf(request, app.prefix), said ? (asked.version ?? null) : null, deps.isService);
      const gone = new AbortController();
      const sink = createHttpSink(reply, limits.clientStallMs, () => gone.abort());
      // Until it is known what is asked, errors go out as the address says.
      let understood: Pick<Understood, 'binding' | 'idText' | 'bare'> & { readonly version: A2aVersion; readonly operation: Operation | null } = {
        binding: address.kind === 'rpc' ? 'jsonrpc' : 'rest',
        idText: 'null',
        bare: false,
        version: asked.version ?? '1.0',
        operation: null,
      };
      let payment: PaymentSlip | null = null;
      const extensionsHeader = request.headers['a2a-extensions'] === undefined ? 'x-a2a-extensions' : 'a2a-extensions';
      const extensions = single(request.headers[extensionsHeader]);
      const { theirs, x402 } = splitExtensions(extensions);
      const activated = payments.open && x402 ? { [extensionsHeader]: X402_EXTENSION } : {};
      const outOf = () =>
        createOut({
          ...understood,
          told: () => ({ ...receiptHeaders(payment), ...activated }),
          answer: createAnswer({ sink, events: understood.operation !== null && isStreaming(understood.operation), keepAlive }),
          onError: (error) => deps.onError(error, request),
        });
      try {
        const { caller } = admissionOf(request);
        if (caller.anonymous && (request.method !== 'POST' || (address.kind === 'rest' && !sends(address.match.operation)))) throw needsCredential();
        const found = understand(address, request, said, asked);
        understood = { ...found, version: found.ask.version, operation: found.ask.operation };
        refuseLookAlikes(found.ask.params);
        if (!deps.allowPrivate) refusePrivateFiles(found.ask.params);
        if (found.binding === 'jsonrpc') refuseRepeatedKeys(found.ask.paramsText);
        const { headers, id: requestId } = request;
        const { operation } = found.ask;
        if (caller.anonymous && !sends(operation)) throw needsCredential();
        const paid = sends(operation) ? await paidMessage(payments, caller, found.ask) : { caller, payment: null };
        payment = paid.payment;
        const ask: Ask = {
          ...found.ask,
          ...paid,
          requestId,
          traceparent: single(headers['traceparent']),
          wantsReceipt: deps.receipts === 'always' || headers['x-receipt'] === '1' || headers['x-receipt'] === 'true',
          maxCost: headers[MAX_COST_HEADER] ?? null,
          extensions: payments.open ? theirs : extensions,
          origin: deps.origin(request),
        };
        await door(ask, outOf(), gone.signal);
      } catch (error) {
        if (error instanceof Misread) understood = { ...understood, idText: error.idText, version: error.version };
        await outOf().fail(error instanceof Misread ? error.fault : error);
      }
      // The client left before the head: there is nobody to answer.
      if (!reply.sent) reply.hijack();
    }

    function understand(address: Address, request: FastifyRequest, said: boolean, asked: ReturnType<typeof readVersion>): Understood {
      if (asked.version === undefined) {
        const idText = address.kind === 'rpc' ? idOf(request.body) : 'null';
        throw new Misread(new A2aError('VersionNotSupported', asked.fault), idText, '1.0');
      }
      if (address.kind === 'none')
        throw new GatewayError('invalid_model', 'There is no such address: POST to /a2a/<agent>, or use the routes of HTTP+JSON below it');
      if (address.kind === 'verb')
        throw new A2aError('UnsupportedOperation', `${request.method} is not for this address: use ${address.allowed.join(' or ')}`);
      const text = request.body === undefined || request.body === null ? '' : jsonText(request.body as Buffer, limits);
      if (address.kind === 'rest') return understandRest(address, text, request.query);
      return understandRpc(address.service, text, said ? asked.version : null);
    }

    for (const path of ['/a2a', '/a2a/*'] as const) {
      const described = describeDoor(path === '/a2a', app.prefix !== '');
      app.post(path, { bodyLimit: limits.bodyBytesMax, schema: described.post }, answer);
      app.get(path, { schema: described.get, exposeHeadRoute: false }, answer);
      app.delete(path, { schema: described.get }, answer);
    }
  };
}

function understandRest({ service, version, match }: Extract<Address, { kind: 'rest' }>, text: string, query: unknown): Understood {
  let body: unknown;
  if (text.trim() !== '') {
    try {
      body = JSON.parse(text);
    } catch {
      throw new A2aError('ParseError', 'The body is not JSON');
    }
  }
  const input = { query: query as Readonly<Record<string, unknown>>, body };
  const params = version === '0.3' ? legacyRestParams(match, input) : restParams(match, input);
  if (typeof params === 'string') throw new A2aError('InvalidParams', params);
  const ask = { operation: match.operation, version, service, params, paramsText: JSON.stringify(params), rpcId: null };
  return { ask, binding: 'rest', idText: 'null', bare: false };
}

/** What is paid for; of everything else those without a credential have nothing. */
const sends = (operation: Operation): boolean => operation === 'send' || operation === 'stream';

const EMPTY: JsonObject = {};

/** `version` is null where the client said none: then its method tells, and 0.3 is what the rest is taken for. */
function understandRpc(service: string, text: string, version: A2aVersion | null): Understood {
  // The parameters are looked at once it is known of which version they are.
  const message = readClientMessage(text, () => null);
  if (message === undefined) throw new A2aError('ParseError', 'The body is not JSON: POST a JSON-RPC 2.0 request');
  if (message?.kind === 'ambiguous') throw new Misread(new A2aError('InvalidRequest', message.fault.message), message.idText, version ?? '0.3');
  if (message === null) {
    const body: unknown = JSON.parse(text);
    if (isBareBody(body)) {
      const params = sendFromBare(body);
      const ask = { operation: 'send', version: '1.0', service, params, paramsText: JSON.stringify(params), rpcId: null } as const;
      return { ask, binding: 'rest', idText: 'null', bare: true };
    }
    const many = Array.isArray(body)
      ? 'A2A has no batches; POST /api/v1/rpc takes them'
      : 'The body must be a JSON-RPC 2.0 request with id, method and params';
    throw new A2aError('InvalidRequest', many);
  }
  if (message.kind !== 'request')
    throw new A2aError('InvalidRequest', 'The body must be a JSON-RPC 2.0 request with an id: A2A has no notifications');
  const { method, params = EMPTY, idText, members, text: envelope } = message;
  const found = version === null ? findMethod(method) : null;
  const spoken = found?.version ?? version ?? '0.3';
  const operation = operationOf(spoken, method);
  if (operation === null) {
    const other = findMethod(method);
    const hint = other === null ? '' : `: it is of A2A ${other.version}, and the request says ${spoken} by its A2A-Version`;
    throw new Misread(new A2aError('MethodNotFound', `There is no method ${JSON.stringify(method.slice(0, 100))}${hint}`), idText, spoken);
  }
  const span = members.get('params');
  const paramsText = span ? envelope.slice(span.start, span.end) : '{}';
  const rpcId = idText.replace(/^"(.*)"$/, '$1').slice(0, 128);
  return { ask: { operation, version: spoken, service, params, paramsText, rpcId }, binding: 'jsonrpc', idText, bare: false };
}

/** The id of a request that is refused before it is read, for its answer. */
function idOf(body: unknown): string {
  try {
    const message = parseMessage((body as Buffer).toString('utf8'));
    return message && message.kind === 'request' ? message.idText : 'null';
  } catch {
    return 'null';
  }
}

/** What follows `/a2a`, percent-encoded and without the query. */
function pathOf({ url }: FastifyRequest, prefix: string): string {
  const path = url.split('?', 1)[0]!;
  return path.slice(prefix.length + '/a2a'.length);
}

function versionQuery({ query }: FastifyRequest): unknown {
  if (!isObject(query)) return undefined;
  for (const [name, value] of Object.entries(query)) if (name.toLowerCase() === VERSION_HEADER) return value;
  return undefined;
}

const single = (value: string | string[] | undefined): string | null => (typeof value === 'string' && value !== '' ? value : null);

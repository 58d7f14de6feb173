import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { createAnswer, createHttpSink, printable, type GatewayError, type KeepAlive } from '#wire';
import type { Config } from '#config';
import {
  MAX_COST_HEADER,
  needsCredential,
  receiptHeaders,
  toGatewayError,
  type Payments,
  type PaymentSlip,
  type Pipeline,
} from '#gateway';
import { requireAdmission } from '#auth';
import { readAddress } from './address.ts';
import type { Ask } from './ask.ts';
import type { CardOrigin } from '../cards/card-pages.ts';
import { describeDoor } from './described-door.ts';
import type { Door } from './door.ts';
import { createReplyWriter } from './reply-writer.ts';
import { X402_EXTENSION } from '../cards/rewrite-card.ts';
import { paidMessage, splitExtensions } from './paid-message.ts';
import { refusePrivateFiles } from './private-files.ts';
import { refuseLookAlikes, refuseRepeatedKeys } from './unambiguous.ts';
import { Misread, understand, type Understood } from './understand.ts';
import { A2aError } from '../wire/a2a-error.ts';
import { REST_MEDIA_TYPES, toA2aError } from '../wire/errors-a2a.ts';
import { isStreaming, type Operation } from '../wire/methods.ts';
import { readVersion, VERSION_HEADER, versionQuery, type A2aVersion } from '../wire/version.ts';

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
  /** The value of `WWW-Authenticate` for an error that another credential would change. */
  readonly challenge: (request: FastifyRequest, error: GatewayError) => string | null;
  readonly onError: (
    error: unknown,
    request: { readonly id: string; readonly method: string; readonly url: string },
  ) => void;
}

/**
 * `/a2a` (all agents) and `/a2a/{service}`: both versions by JSON-RPC and HTTP+JSON, and the bare message. Register
 * it at the root and under `/api/v1`.
 */
export function a2aRoutes(deps: A2aRoutesDeps): FastifyPluginAsync {
  const { limits, door, payments, keepAlive } = deps;

  return async (app) => {
    const admissionOf = requireAdmission(app, deps.admit, true);
    // What a message must be, the protocol says in its own words.
    app.setValidatorCompiler(() => () => true);
    app.removeAllContentTypeParsers();
    const keep = { parseAs: 'buffer', bodyLimit: limits.bodyBytesMax } as const;
    app.addContentTypeParser(['application/json', 'application/a2a+json'], keep, (_request, body, done) =>
      done(null, body),
    );

    app.setErrorHandler((thrown, request, reply) => {
      const { version = '1.0' } = readVersion(request.headers[VERSION_HEADER], versionQuery(request));
      const address = readAddress(request.method, pathOf(request, app.prefix), version, deps.isService);
      const binding = address.kind === 'rpc' ? 'jsonrpc' : 'rest';
      const error =
        (thrown as { readonly code?: unknown }).code === NO_PARSER
          ? otherContentType(request.headers['content-type'])
          : thrown;
      const { status, headers, text } = toA2aError(error, { version, binding });
      if (status >= 500) deps.onError(error, request);
      const challenge = deps.challenge(request, toGatewayError(error));
      void reply
        .code(status)
        .headers(challenge === null ? headers : { ...headers, 'www-authenticate': challenge })
        .type(binding === 'rest' ? REST_MEDIA_TYPES[version] : 'application/json')
        .send(text);
    });

    async function answer(request: FastifyRequest, reply: FastifyReply): Promise<void> {
      const asked = readVersion(request.headers[VERSION_HEADER], versionQuery(request));
      const said = request.headers[VERSION_HEADER] !== undefined || versionQuery(request) !== undefined;
      const address = readAddress(
        request.method,
        pathOf(request, app.prefix),
        said ? (asked.version ?? null) : null,
        deps.isService,
      );
      const gone = new AbortController();
      const sink = createHttpSink(reply, limits.clientStallMs, () => gone.abort());
      // Until it is known what is asked, errors go out as the address says.
      let understood: Pick<Understood, 'binding' | 'idText' | 'bare'> & {
        readonly version: A2aVersion;
        readonly operation: Operation | null;
      } = {
        binding: address.kind === 'rpc' ? 'jsonrpc' : 'rest',
        idText: 'null',
        bare: false,
        version: asked.version ?? '1.0',
        operation: null,
      };
      let payment: PaymentSlip | null = null;
      let challenge: string | null = null;
      const extensionsHeader = request.headers['a2a-extensions'] === undefined ? 'x-a2a-extensions' : 'a2a-extensions';
      const extensions = single(request.headers[extensionsHeader]);
      const { theirs, x402 } = splitExtensions(extensions);
      const activated = payments.open && x402 ? { [extensionsHeader]: X402_EXTENSION } : {};
      const writer = () =>
        createReplyWriter({
          ...understood,
          told: () => ({
            ...receiptHeaders(payment),
            ...activated,
            ...(challenge === null ? {} : { 'www-authenticate': challenge }),
          }),
          answer: (headers) =>
            createAnswer({
              sink,
              events: understood.operation !== null && isStreaming(understood.operation),
              keepAlive,
              headers,
            }),
          onError: (error) => deps.onError(error, request),
        });
      try {
        const { caller } = admissionOf(request);
        if (
          caller.anonymous &&
          address.kind !== 'verb' &&
          (request.method !== 'POST' || (address.kind === 'rest' && !sends(address.match.operation)))
        )
          throw needsCredential();
        const found = understand({ address, request, asked, said, limits });
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
        await door(ask, writer(), gone.signal);
      } catch (thrown) {
        if (thrown instanceof Misread) understood = { ...understood, idText: thrown.idText, version: thrown.version };
        const error = thrown instanceof Misread ? thrown.fault : thrown;
        challenge = deps.challenge(request, toGatewayError(error));
        await writer().fail(error);
      }
      // The client left before the head: there is nobody to answer.
      if (!reply.sent) reply.hijack();
    }

    const refusal = (error: GatewayError) => toA2aError(error, { version: '1.0', binding: 'rest' });
    for (const path of ['/a2a', '/a2a/*'] as const) {
      const described = describeDoor(path === '/a2a', app.prefix !== '');
      app.post(path, { bodyLimit: limits.bodyBytesMax, schema: described.post, config: { refusal } }, answer);
      app.get(path, { schema: described.get, exposeHeadRoute: false }, answer);
      app.delete(path, { schema: described.get }, answer);
    }
  };
}

const NO_PARSER = 'FST_ERR_CTP_INVALID_MEDIA_TYPE';

const otherContentType = (type: string | undefined) =>
  new A2aError(
    'ContentTypeNotSupported',
    `The body must have the Content-Type application/json or application/a2a+json, not ${printable(type ?? 'none')}`,
    {
      param: 'Content-Type',
    },
  );

/** What is paid for; of everything else those without a credential have nothing. */
const sends = (operation: Operation): boolean => operation === 'send' || operation === 'stream';

/** What follows `/a2a`, percent-encoded and without the query. */
function pathOf({ url }: FastifyRequest, prefix: string): string {
  const path = url.split('?', 1)[0]!;
  return path.slice(prefix.length + '/a2a'.length);
}

const single = (value: string | string[] | undefined): string | null =>
  typeof value === 'string' && value !== '' ? value : null;

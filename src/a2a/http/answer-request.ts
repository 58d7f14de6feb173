import type { FastifyReply, FastifyRequest } from 'fastify';
import { createAnswer, createHttpSink, type GatewayError, type KeepAlive } from '#wire';
import type { Config } from '#config';
import {
  heldBodyOf,
  MAX_COST_HEADER,
  needsCredential,
  rateHeaders,
  receiptHeaders,
  toGatewayError,
  type Admission,
  type Payments,
  type PaymentAttempt,
  requestedQuote,
} from '#gateway';
import { readAddress, type Address } from './address.ts';
import type { A2aRequest } from './a2a-request.ts';
import type { CardOrigin } from '../cards/card-pages.ts';
import type { A2aHandler } from './handler.ts';
import { createReplyWriter, type ReplyEnvelope } from './reply-writer.ts';
import { X402_EXTENSION } from '../cards/rewrite-card.ts';
import { paidMessage, splitExtensions } from './paid-message.ts';
import { refusePrivateFiles } from './private-files.ts';
import { refuseAmbiguousKeys, refuseRepeatedKeys } from './unambiguous.ts';
import { Misread, understand } from './understand.ts';
import {
  isStreaming,
  type Operation,
  readVersion,
  VERSION_HEADER,
  versionQuery,
  type VersionReading,
} from '../wire/protocol.ts';

export interface AnswerRequestDeps {
  readonly handler: A2aHandler;
  readonly payments: Payments;
  /** Whether an agent or a bridge has this name. */
  readonly isService: (name: string) => boolean;
  readonly limits: Pick<Config['limits'], 'bodyBytesMax' | 'jsonDepthMax' | 'jsonKeysMax' | 'clientStallMs'>;
  readonly receipts: Config['billing']['receipts'];
  /** Allows file URLs on hosts of private networks, for development. */
  readonly allowPrivate: boolean;
  readonly keepAlive: KeepAlive;
  readonly origin: (request: FastifyRequest) => CardOrigin | null;
  /** The value of `WWW-Authenticate` for an error that another credential would avoid; null for other errors. */
  readonly challenge: (request: FastifyRequest, error: GatewayError) => string | null;
  readonly onError: (
    error: unknown,
    request: { readonly id: string; readonly method: string; readonly url: string },
  ) => void;
}

/** Answers one HTTP request below `/a2a`, of any version and binding. Never throws. */
export function createAnswerRequest(
  deps: AnswerRequestDeps,
  prefix: string,
  admissionOf: (request: FastifyRequest) => Admission,
): (request: FastifyRequest, reply: FastifyReply) => Promise<void> {
  const { limits, payments } = deps;
  return async (request, reply) => {
    const asked = readVersionOf(request);
    const said = saysVersion(request);
    const address = addressOf(request, prefix, said ? (asked.version ?? null) : null, deps.isService);
    const gone = new AbortController();
    const sink = createHttpSink(
      reply,
      limits.clientStallMs,
      () => gone.abort(),
      () => rateHeaders(admissionOf(request).rate),
    );
    const extensions = readExtensions(request, payments);
    // Until the request is parsed, its address decides the form of errors.
    let envelope: ReplyEnvelope = {
      binding: address.kind === 'rpc' ? 'jsonrpc' : 'rest',
      idText: 'null',
      bare: false,
      version: asked.version ?? '1.0',
      operation: null,
    };
    let payment: PaymentAttempt | null = null;
    let challenge: string | null = null;
    const writer = () =>
      createReplyWriter({
        ...envelope,
        accept: request.headers.accept,
        moreHeaders: () => ({
          ...receiptHeaders(payment),
          ...extensions.activated,
          ...(challenge === null ? {} : { 'www-authenticate': challenge }),
        }),
        answer: (headers) =>
          createAnswer({
            sink,
            events: envelope.operation !== null && isStreaming(envelope.operation),
            keepAlive: deps.keepAlive,
            headers,
          }),
        onError: (error) => deps.onError(error, request),
      });
    // If the client leaves, its message is still answered.
    const giveBodyBack = heldBodyOf(request)?.keep();
    try {
      const { caller } = admissionOf(request);
      if (caller.anonymous && !maySend(address, request.method)) throw needsCredential();
      const { ask: understood, ...form } = understand({ address, request, asked, said, limits });
      const { operation, params, paramsText, version } = understood;
      envelope = { ...form, version, operation };
      refuseAmbiguousKeys(params);
      if (!deps.allowPrivate) refusePrivateFiles(params);
      if (form.binding === 'jsonrpc') refuseRepeatedKeys(paramsText);
      if (caller.anonymous && !sends(operation)) throw needsCredential();
      const paid = sends(operation) ? await paidMessage(payments, caller, understood) : { caller, payment: null };
      payment = paid.payment;
      const { headers, id: requestId } = request;
      const ask: A2aRequest = {
        ...understood,
        ...paid,
        requestId,
        traceparent: single(headers['traceparent']),
        wantsReceipt: deps.receipts === 'always' || headers['x-receipt'] === '1' || headers['x-receipt'] === 'true',
        maxCost: headers[MAX_COST_HEADER] ?? null,
        quote: sends(operation) ? requestedQuote(null, headers, null) : null,
        extensions: extensions.forAgent,
        origin: () => deps.origin(request),
      };
      await deps.handler(ask, writer(), gone.signal);
    } catch (thrown) {
      if (thrown instanceof Misread) envelope = { ...envelope, idText: thrown.idText, version: thrown.version };
      const error = thrown instanceof Misread ? thrown.fault : thrown;
      challenge = deps.challenge(request, toGatewayError(error));
      await writer().fail(error);
    } finally {
      giveBodyBack?.();
    }
    // The client disconnected before the head was written, so no response is sent.
    if (!reply.sent) reply.hijack();
  };
}

/** The version that a request names in its header or query; the default version if it names none. */
export const readVersionOf = (request: FastifyRequest): VersionReading =>
  readVersion(request.headers[VERSION_HEADER], versionQuery(request));

const saysVersion = (request: FastifyRequest): boolean =>
  request.headers[VERSION_HEADER] !== undefined || versionQuery(request) !== undefined;

/** Finds the kind of the address of a request. `version`: null if the request names none. */
export function addressOf(
  { method, url }: FastifyRequest,
  prefix: string,
  version: Parameters<typeof readAddress>[2],
  isService: AnswerRequestDeps['isService'],
): Address {
  // Percent-encoded, without the query.
  const path = url.split('?', 1)[0]!.slice(prefix.length + '/a2a'.length);
  return readAddress(method, path, version, isService);
}

/** The extensions that a request activates at its agent, and the response headers that name those of the gateway. */
function readExtensions(
  { headers }: FastifyRequest,
  { open }: Payments,
): { readonly forAgent: string | null; readonly activated: Readonly<Record<string, string>> } {
  const name = headers['a2a-extensions'] === undefined ? 'x-a2a-extensions' : 'a2a-extensions';
  const all = single(headers[name]);
  if (!open) return { forAgent: all, activated: {} };
  const { theirs, x402 } = splitExtensions(all);
  return { forAgent: theirs, activated: x402 ? { [name]: X402_EXTENSION } : {} };
}

/** Only sends can be paid in place. Every other operation needs a credential. */
const sends = (operation: Operation): boolean => operation === 'send' || operation === 'stream';

/** False if the address shows that the request is not a send. True for a wrong verb, so that it gets its own error. */
function maySend(address: Address, method: string): boolean {
  if (address.kind === 'verb') return true;
  return method === 'POST' && (address.kind !== 'rest' || sends(address.match.operation));
}

const single = (value: string | string[] | undefined): string | null =>
  typeof value === 'string' && value !== '' ? value : null;

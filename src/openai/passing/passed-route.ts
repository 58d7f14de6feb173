import { hash } from 'node:crypto';
import type { FastifyPluginAsync } from 'fastify';
import type { Caller } from '#accounts';
import { requireAdmission } from '#auth';
import type { Settlement } from '#billing/amounts';
import { MODEL_KINDS, type ModelKind } from '#config/model-kinds';
import { dialectOf, PARSED_JSON, toHttpError } from '#http';
import {
  addPaidRoute,
  bodyFrom,
  type CallRequest,
  openCall,
  type PaidRoute,
  type Payer,
  payerOf,
  type StartedProviderCall,
  takeBytes,
} from '#call';
import { NO_PAYMENTS, type PaymentAttempt } from '#payments';
import { type ChatDeps, paidRouteDeps } from '../routes/chat-routes.ts';
import { isLine } from '../chat/price/priced-parts.ts';
import { refusePrivateUrls } from '../chat/request/refusals.ts';
import type { ChatWire } from '../translated/chat-wire.ts';
import { answerError, createReadBody, errorsOf, refusesAs } from '../translated/translated-route.ts';
import { writeAnswer } from './write-answer.ts';

export interface PassedContext {
  readonly caller: Caller;
  readonly payment: PaymentAttempt | null;
  readonly requestId: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly replyBytesMax: number;
  /** A large reply may go out as it comes. Default: a reply is whole before any of it goes out. */
  readonly passes?: boolean;
  readonly receipts: 'always' | 'on-request';
  /** Names of fields that were lost before, which no offer gets; absent for none. */
  readonly lost?: readonly string[];
}

/** A request as the pipeline takes it. The result is null if the reply was cut, or none had begun. */
export interface PassedCall<R> {
  readonly request: CallRequest<R | null, Uint8Array>;
  readonly dropped: () => readonly string[];
}

export interface AnsweredCall {
  readonly id: string;
  readonly service: string;
  readonly providerName: string;
  readonly settlement: Settlement;
}

/** A kind of request that is answered in one piece. `B` is its checked body, `R` the result of its call. */
export interface PassedWire<B, R> {
  /** Its row in the table of kinds says its path and its summary. */
  readonly kind: ModelKind;
  readonly described: { readonly operationId: string; readonly description: string };
  /** Names the answer in errors. */
  readonly noun: string;
  readonly schema: ChatWire<never>['schema'];
  /** The request fields that have an effect at every provider, beside those that it must have. */
  readonly parameters: readonly string[];
  readonly answerSchema: object;
  /** Completes a parsed body before it is checked. */
  readonly complete?: (parsed: unknown) => unknown;
  /** Members of its body that may hold the address of a file, on all levels. No private host is passed on. */
  readonly addresses: readonly string[];
  /** Refuses what a schema cannot describe. Throws GatewayError. */
  readonly check: (body: B) => void;
  readonly toCall: (body: B, context: PassedContext) => PassedCall<R>;
  /** The bytes of the answer, in pieces, at least one. */
  readonly answer: (result: R, call: AnsweredCall, body: B) => readonly Uint8Array[];
}

interface Decoded<B> extends Payer {
  readonly body: B;
}

/** A version of an API in which the same request has another answer, and errors of another form. */
interface ApiVersion extends Required<Pick<ChatWire<never>, 'toError' | 'errorSchema'>> {
  /** Ends the operation id of its route. */
  readonly name: string;
}

/** The route of a wire. `version`: of the API; absent for the one whose errors are as in chat. */
export function passedRoutes<B extends { readonly model: string }, R>(
  deps: ChatDeps,
  wire: PassedWire<B, R>,
  version?: ApiVersion,
): FastifyPluginAsync {
  const { pipeline, payments = NO_PAYMENTS, config } = deps;
  const { limits, upstream, billing } = config;
  const readBody = createReadBody<B>(limits, wire.schema);
  const name = version?.name ?? '';
  const {
    summary,
    paths: [path],
  } = MODEL_KINDS[wire.kind];
  const addresses: ReadonlySet<string> = new Set(wire.addresses);
  const publicOnly = config.webhooks?.allowPrivate === false;

  const route: PaidRoute<Decoded<B>, StartedProviderCall<R | null, Uint8Array>> = {
    path,
    options: {
      schema: {
        summary: name === '' ? summary : `${summary} (${name})`,
        description: wire.described.description,
        operationId: `${wire.described.operationId}${name}`,
        tags: ['Chat'],
        consumes: ['application/json'],
        body: wire.schema,
        response: { 200: wire.answerSchema, ...(version && errorsOf(version)) },
      },
      ...(version && { errorHandler: answerError(deps, version) }),
      config: { ...(version && refusesAs(version)), clientsAppend: true },
    },
    async decode(request, admitted) {
      const { headers } = request;
      const bytes = bodyFrom(request);
      const body = await readBody(bytes, headers, wire.complete);
      wire.check(body);
      if (publicOnly && addresses.size > 0) refusePrivateUrls(body, addresses);
      const bodyHash = () => hash('sha256', `${name}${path} ${hash('sha256', bytes)}`);
      return { body, ...(await payerOf(payments, headers, admitted, bodyHash)) };
    },
    answer({ body, caller, payment }, { request, client, onError }) {
      const { request: call, dropped } = wire.toCall(body, {
        caller,
        payment,
        requestId: request.id,
        headers: request.headers,
        replyBytesMax: upstream.replyBytesMax,
        // The line of a batch has its answer in memory.
        passes: !isLine(caller),
        receipts: billing.receipts,
      });
      return {
        noun: wire.noun,
        model: body.model,
        open: (callId, gone) => openCall(pipeline, call, callId, gone),
        write: (startedCall, sink) =>
          writeAnswer(startedCall, sink, {
            dropped,
            onError,
            noun: wire.noun,
            client,
            toHttp: (error) => (version ? version.toError(error, request) : toHttpError(error, dialectOf(request))),
            pieces: (result, settlement, providerName) =>
              wire.answer(
                result,
                { id: startedCall.id, service: startedCall.call.service, providerName, settlement },
                body,
              ),
          }),
      };
    },
  };
  return async (app) => {
    const admissionOf = requireAdmission(app, pipeline.admit, true);
    takeBytes(app, limits.chatBodyBytesMax, PARSED_JSON);
    addPaidRoute(app, paidRouteDeps(deps, admissionOf), route);
  };
}

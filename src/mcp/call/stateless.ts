import type { IncomingHttpHeaders } from 'node:http';
import type { ClientAnswer } from '#http';
import { errorText, parseMessage, type RequestMessage } from '#json-rpc';
import { GatewayError } from '#errors';
import { isObject, isPromise, type JsonObject } from '#wire';
import type { Seals } from '#security';
import { type CancelSignal, signalOf } from '#billing/amounts';
import type { Config } from '#config';
import type { Caller } from '#accounts';
import {
  type CostCap,
  lowestCap,
  MAX_COST_HEADER,
  MAX_COST_META,
  parseIdempotencyKey,
  refuseCapBeside,
  requestedQuote,
} from '#call';
import type { StreamQuota } from '#limits';
import { ownerOf } from '#tasks';
import { OURS } from '../wire/interpreted-fields.ts';
import { withoutAnswer } from '../request/approval.ts';
import { withoutMeta } from '../wire/meta.ts';
import { withoutTaskParam } from '../request/extension.ts';
import { ERROR, LEGACY_METHODS, MODERN_METHODS, modernStatusOf, type MethodRule, X402 } from '../wire/revisions.ts';
import type { ReadPaid } from '../request/paid-request.ts';
import type { OwnMeta } from '../request/mcp-request.ts';
import type { RunRequest } from './request-call.ts';
import { openState } from '../request/request-state.ts';
import { listenEnd } from '../wire/own-messages.ts';

export interface RequestContext {
  readonly caller: Caller;
  readonly requestId: string;
  readonly headers: IncomingHttpHeaders;
  /** For the aggregate: the services that its address names; null for all. */
  readonly selection: string | null;
  readonly gone: CancelSignal;
}

export interface StatelessRequest {
  readonly client: 'modern' | 'bare';
  readonly message: RequestMessage;
  readonly capabilities: JsonObject;
  readonly events: boolean;
  /** The gateway made it from another request, so the headers don't describe its arguments. */
  readonly unwrapped?: boolean;
}

export interface StatelessDeps {
  readonly runRequest: RunRequest;
  readonly readPaid: ReadPaid;
  readonly seals: Seals;
  readonly receipts: Config['billing']['receipts'];
}

/** Answers a request at one service. `toClient` changes the messages that come back. Default: no change. */
export type RunStateless = (
  service: string,
  request: StatelessRequest,
  context: RequestContext,
  answer: ClientAnswer,
  toClient?: (text: string) => string,
) => Promise<void>;

export function createStateless({ runRequest, readPaid, seals, receipts }: StatelessDeps): RunStateless {
  return async (
    service,
    { client, message: request, capabilities, events, unwrapped = false },
    context,
    answer,
    toClient = AS_IT_IS,
  ) => {
    const { headers, requestId, gone } = context;
    if (client === 'bare' && request.method === 'ping')
      return answer.end(`{"jsonrpc":"2.0","id":${request.idText},"result":{}}`, 200);
    const own = ownMeta(request, headers, receipts);
    const paid = readPaid(context.caller, service, own);
    const { caller, payment } = isPromise(paid) ? await paid : paid;
    const continued = openState(seals, caller, request);
    if (continued === 'unknown') {
      const text =
        'This requestState has expired, or this gateway did not give it to this account. Repeat the request without it';
      return answer.end(
        errorText(request.idText, { code: ERROR.invalidParams, message: text }),
        modernStatusOf(ERROR.invalidParams),
      );
    }
    await runRequest(
      {
        message: own.message,
        client,
        caller,
        requestId,
        callId: '',
        service,
        target: service,
        rule: ruleOf(client, request.method),
        traceparent: traceOf(headers, request),
        wantsReceipt: own.wantsReceipt,
        idempotencyKey: own.idempotencyKey,
        cap: own.cap,
        quote: own.quote,
        payment,
        elicitationAction: own.elicitationAction,
        events,
        capabilities,
        paramHeaders: unwrapped ? null : paramHeaders(headers),
        session: null,
        continued,
        toClient,
      },
      answer,
      gone,
    );
  };
}

const AS_IT_IS = (text: string) => text;

function ruleOf(client: StatelessRequest['client'], method: string): MethodRule {
  const rule = (client === 'modern' ? MODERN_METHODS : LEGACY_METHODS)[method];
  if (!rule) throw new Error(`${method} was let in and is in no table`);
  return rule;
}

/** Reads the members for the gateway itself, and removes them. Throws GatewayError `invalid_request`. */
export function ownMeta(
  request: RequestMessage,
  headers: IncomingHttpHeaders,
  receipts: Config['billing']['receipts'],
): OwnMeta {
  const meta = isObject(request.params?.['_meta']) ? request.params['_meta'] : null;
  const key = meta?.['tollgate/idempotency-key'] ?? headers['idempotency-key'];
  const receipt = headers['x-receipt'];
  const there = meta !== null && OURS.some((name) => Object.hasOwn(meta, name));
  const plain = withoutTaskParam(request);
  const stripped = there ? parseMessage(withoutMeta(plain.text, OURS)) : plain;
  if (stripped?.kind !== 'request') throw new GatewayError('internal', 'Internal error');
  const { message, elicitationAction } = withoutAnswer(stripped);
  return {
    message,
    elicitationAction,
    cap: request.method === 'tools/call' ? capOf(request, meta, headers) : null,
    quote: request.method === 'tools/call' ? requestedQuote(null, headers, null) : null,
    wantsReceipt: receipts === 'always' || receipt === '1' || receipt === 'true' || meta?.['tollgate/receipt'] === true,
    idempotencyKey: key === undefined ? null : parseIdempotencyKey(key),
    payment: meta?.[X402.payment],
  };
}

function capOf({ params = {} }: RequestMessage, meta: JsonObject | null, headers: IncomingHttpHeaders): CostCap | null {
  refuseCapBeside(params, 'params._meta');
  return lowestCap([
    [MAX_COST_META, meta?.[MAX_COST_META]],
    [MAX_COST_HEADER, headers[MAX_COST_HEADER]],
  ]);
}

const PARAM = 'mcp-param-';

function paramHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const result: Record<string, string> = {};
  for (const name in headers) {
    const value = name.startsWith(PARAM) ? headers[name] : undefined;
    if (typeof value === 'string') result[name] = value;
  }
  return result;
}

/** The trace that a request belongs to. MCP carries it in `_meta`, HTTP in a header; `_meta` comes first. */
export function traceOf(headers: IncomingHttpHeaders, { params }: RequestMessage): string | null {
  const meta = isObject(params?.['_meta']) ? params['_meta']['traceparent'] : undefined;
  const trace = typeof meta === 'string' ? meta : headers['traceparent'];
  return typeof trace === 'string' ? trace : null;
}

/**
 * Answers requests at single services. Each `subscriptions/listen` takes one of the limited places for listening. Every
 * other method passes unchanged.
 */
export function boundedListens(toService: RunStateless, places: StreamQuota): RunStateless {
  const listen: RunStateless = async (service, request, context, answer, toClient) => {
    const { idText } = request.message;
    const place = places.take(ownerOf(context.caller));
    if (place === null) {
      const { status, message } = places.refusal();
      return answer.end(errorText(idText, { code: ERROR.server, message }), status);
    }
    const within: ClientAnswer = {
      events: (bytes) => answer.events(bytes),
      end: (...last) => answer.end(...last),
      body: (asEvent) => answer.body(asEvent),
      close() {
        if (!place.over.aborted) return answer.close();
        answer.end(listenEnd(idText), 200);
      },
    };
    try {
      await toService(
        service,
        request,
        { ...context, gone: AbortSignal.any([signalOf(context.gone), place.over]) },
        within,
        toClient,
      );
    } finally {
      place.leave();
    }
  };

  return (...args) => {
    const [, { message }] = args;
    return message.method === 'subscriptions/listen' ? listen(...args) : toService(...args);
  };
}

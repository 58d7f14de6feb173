import {
  capCost,
  type CallRequest,
  lowestCap,
  MAX_COST_HEADER,
  NO_PREFERENCES,
  type ProviderPreferences,
  type RequestAdapter,
  requestedQuote,
  requestedSession,
  singleRequest,
  toPreferences,
  wantsReceipt,
} from '#call';
import { MODEL_KINDS, type ModelKind } from '#config/model-kinds';
import type { Offer } from '#catalog';
import type { PassedCall, PassedContext } from './passed-route.ts';
import { foldName } from '#wire';
import type { ChatBody } from '../chat/chat-schema.ts';
import { requireKind } from '../model-kinds.ts';
import { listed } from '../chat/price/paid-extras.ts';
import { isLine, linePriceAt } from '../chat/price/priced-parts.ts';
import { PUBLISHED as OF_CHAT, forwardedBody } from '../chat/request/forwarded-body.ts';

/* Requests that pass to a provider in the form in which they came: embeddings, reranking and moderations. */

/** Folded names of chat fields, because some servers fold names. */
const OF_CHAT_FOLDED: ReadonlySet<string> = new Set([...OF_CHAT].map((name) => foldName(name)));
const OPTION_CHARS_MAX = 256;

/**
 * Whether a field may be forwarded. A server might read a long text or a list, but only the published fields are
 * priced. A model that lists such a field gets it.
 */
function isGiven(field: string, value: unknown, offer: Offer): boolean {
  if (listed(offer, field)) return true;
  // These requests have no prices by service tier, also if the model has them for chat.
  if (foldName(field) === 'servicetier') return false;
  return typeof value === 'string' ? value.length <= OPTION_CHARS_MAX : typeof value !== 'object' || value === null;
}

/**
 * The body for `offer`. It gets the fields of `sent`. Unpublished fields go to providers that list them, as in a chat
 * request. Fields that only chat has are dropped, because a server that reads `messages` would read text that is not
 * priced.
 */
export function passedBody(
  body: Readonly<Record<string, unknown>>,
  offer: Offer,
  sent: ReadonlySet<string>,
): ReturnType<typeof forwardedBody> {
  const others: Record<string, unknown> = {};
  const lost: string[] = [];
  for (const field of Object.keys(body)) {
    if (sent.has(field)) continue;
    if (field === 'model' || (!OF_CHAT_FOLDED.has(foldName(field)) && isGiven(field, body[field], offer)))
      others[field] = body[field];
    else lost.push(field);
  }
  const { body: forwarded, dropped } = forwardedBody(others as ChatBody, offer, { tokens: Infinity, field: null });
  for (const field of sent) {
    const value = body[field];
    if (value !== undefined && value !== null) forwarded[field] = value;
  }
  return { body: forwarded, dropped: [...lost, ...dropped] };
}

interface AskedOfGateway {
  readonly model: string;
  readonly provider?: ProviderPreferences | null;
  readonly session_id?: string | null;
  readonly max_cost?: number | string | null;
  readonly metadata?: Record<string, unknown> | null;
}

interface PassedParts<R> extends Pick<CallRequest, 'price' | 'estimate'> {
  readonly kind: ModelKind;
  readonly bodyFor: (offer: Offer) => ReturnType<typeof passedBody>;
  readonly reader: RequestAdapter<R | null>['reader'];
  /** Requests that name no session stay with one provider as well, because the answers of two cannot be compared. */
  readonly staysAs?: string;
}

/** Turns a checked body into a request for the pipeline. Throws GatewayError `invalid_request`. */
export function passedCall<R>(body: AskedOfGateway, context: PassedContext, parts: PassedParts<R>): PassedCall<R> {
  const { caller, headers, requestId, payment, lost = [] } = context;
  const { kind, bodyFor, reader, staysAs = null, price, estimate } = parts;
  let dropped: readonly string[] = [];
  const adapter: RequestAdapter<R | null> = {
    request(offer) {
      const forwarded = bodyFor(offer);
      dropped = forwarded.dropped;
      return {
        method: 'POST',
        path: MODEL_KINDS[kind].paths[0],
        headers: { 'content-type': 'application/json', accept: 'application/json', 'x-request-id': requestId },
        body: Buffer.from(JSON.stringify(forwarded.body)),
      };
    },
    reader,
  };
  const session = requestedSession(body, headers) ?? staysAs;
  const traceparent = headers['traceparent'];
  const request: PassedCall<R>['request'] = {
    primitive: 'model',
    caller,
    requestId,
    targets: [body.model],
    preferences: body.provider ? toPreferences(body.provider) : NO_PREFERENCES,
    stickyKey: session === null ? null : `${caller.account} ${session}`,
    images: 0,
    stream: false,
    adapter: singleRequest(adapter),
    ...(price !== undefined ? { price } : isLine(caller) ? { price: (offer) => linePriceAt(offer, null) } : {}),
    estimate(offer) {
      requireKind(offer, kind);
      return estimate(offer);
    },
    lacks: (offer) => [...lost, ...bodyFor(offer).dropped],
    metadata: body.metadata ?? null,
    endUser: 'user' in body && typeof body.user === 'string' ? body.user : null,
    traceparent: typeof traceparent === 'string' ? traceparent : null,
    wantsReceipt: wantsReceipt(false, context),
    quote: requestedQuote(null, headers, null),
    ...(payment ? { payment } : {}),
  };
  const cap = lowestCap([
    ['max_cost', body.max_cost],
    [MAX_COST_HEADER, headers[MAX_COST_HEADER]],
  ]);
  return { request: capCost(request, cap), dropped: () => dropped };
}

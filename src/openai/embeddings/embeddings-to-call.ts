import { foldName } from '#wire';
import { GatewayError } from '#errors';
import type { Caller } from '#accounts';
import {
  capCost,
  type CallRequest,
  type RequestAdapter,
  lowestCap,
  MAX_COST_HEADER,
  NO_PREFERENCES,
  singleRequest,
  requestedQuote,
  requestedSession,
  toPreferences,
  wantsReceipt,
} from '#gateway';
import type { Offer } from '#catalog';
import type { PaymentAttempt } from '#payments';
import type { ChatBody } from '../chat/chat-schema.ts';
import { PUBLISHED as OF_CHAT, forwardedBody } from '../chat/forwarded-body.ts';
import { isEmbedder, type EmbeddingsBody, EMBEDDINGS_PARAMETERS } from './embeddings-schema.ts';
import { createEmbeddingsReader, type EmbeddingsResult, type InputSize } from './embeddings-reader.ts';

interface EmbeddingsContext {
  readonly caller: Caller;
  readonly payment: PaymentAttempt | null;
  readonly requestId: string;
  /** Request headers, lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly replyBytesMax: number;
  readonly receipts: 'always' | 'on-request';
  /** Names of fields that were lost before, which no offer gets; absent for none. */
  readonly lost?: readonly string[];
}

/** A request for embeddings as the pipeline takes it. */
interface EmbeddingsCall {
  readonly request: CallRequest<EmbeddingsResult | null, Uint8Array>;
  /** Names of the fields that the latest offer did not get. */
  readonly dropped: () => readonly string[];
}

/** Published fields, which every provider gets. */
const SENT: ReadonlySet<string> = new Set(['input', ...EMBEDDINGS_PARAMETERS]);

/** Turns a checked body into a request for the pipeline. Throws GatewayError `invalid_request`. */
export function embeddingsToCall(body: EmbeddingsBody, context: EmbeddingsContext): EmbeddingsCall {
  const { caller, headers, requestId, replyBytesMax, payment, lost = [] } = context;
  const size = measureInput(body);
  let dropped: readonly string[] = [];
  const adapter: RequestAdapter<EmbeddingsResult | null> = {
    request(offer) {
      const forwarded = bodyFor(body, offer);
      dropped = forwarded.dropped;
      return {
        method: 'POST',
        path: '/embeddings',
        headers: { 'content-type': 'application/json', accept: 'application/json', 'x-request-id': requestId },
        body: Buffer.from(JSON.stringify(forwarded.body)),
      };
    },
    reader: (offer) => createEmbeddingsReader({ size, tokensMax: plausibleTokens(size, offer), replyBytesMax }),
  };
  const traceparent = headers['traceparent'];
  const request: EmbeddingsCall['request'] = {
    primitive: 'model',
    caller,
    requestId,
    targets: [body.model],
    preferences: body.provider ? toPreferences(body.provider) : NO_PREFERENCES,
    // Embeddings of one model differ slightly between providers. Comparable embeddings should come from one
    // provider.
    stickyKey: `${caller.account} ${requestedSession(body, headers) ?? `embeddings ${body.model}`}`,
    images: 0,
    stream: false,
    adapter: singleRequest(adapter),
    estimate(offer) {
      if (!isEmbedder(offer.model!))
        throw new GatewayError('unprocessable', `${offer.service} makes no embeddings. Call it at /chat/completions`, {
          param: 'model',
        });
      return { prompt: BigInt(tokensMax(size, offer.model!.contextLength)) };
    },
    lacks: (offer) => [...lost, ...bodyFor(body, offer).dropped],
    metadata: body.metadata ?? null,
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

/** Folded names of chat fields, because some servers fold names. */
const OF_CHAT_FOLDED: ReadonlySet<string> = new Set([...OF_CHAT].map((name) => foldName(name)));
const OPTION_CHARS_MAX = 256;

/**
 * Whether a field may be forwarded. A server might embed a long text or a list, but only `input` is priced. A model
 * that lists such a field gets it.
 */
function isGiven(field: string, value: unknown, { model }: Offer): boolean {
  if (Array.isArray(model!.forward) && (model!.forward as readonly string[]).includes(field)) return true;
  // Embeddings have no prices by service tier, also if the model has them for chat.
  if (foldName(field) === 'servicetier') return false;
  return typeof value === 'string' ? value.length <= OPTION_CHARS_MAX : typeof value !== 'object' || value === null;
}

/**
 * The body for `offer`. Unpublished fields go to providers that list them, as in a chat request. Fields that only
 * chat has are dropped, because a server that embeds `messages` would embed text that is not priced.
 */
function bodyFor(body: EmbeddingsBody, offer: Offer): ReturnType<typeof forwardedBody> {
  const others: Record<string, unknown> = {};
  const lost: string[] = [];
  for (const field of Object.keys(body)) {
    if (SENT.has(field)) continue;
    if (field === 'model' || (!OF_CHAT_FOLDED.has(foldName(field)) && isGiven(field, body[field], offer)))
      others[field] = body[field];
    else lost.push(field);
  }
  const { body: forwarded, dropped } = forwardedBody(others as ChatBody, offer, { tokens: Infinity, field: null });
  for (const field of SENT) {
    const value = body[field];
    if (value !== undefined && value !== null) forwarded[field] = value;
  }
  return { body: forwarded, dropped: [...lost, ...dropped] };
}

/** Tokens that a service may put around an input: special tokens, and its own words for the task. */
const TOKENS_OF_FRAME = 16;
/** The special tokens at the beginning and the end of an input. */
const TOKENS_OF_ENDS = 2;

function measureInput({ input }: Pick<EmbeddingsBody, 'input'>): InputSize {
  if (typeof input === 'string') return { each: [Buffer.byteLength(input)], counted: false };
  if (typeof input[0] === 'number') return { each: [input.length], counted: true };
  if (typeof input[0] === 'string')
    return { each: (input as readonly string[]).map((text) => Buffer.byteLength(text)), counted: false };
  return { each: (input as readonly (readonly number[])[]).map(({ length }) => length), counted: true };
}

/** The most tokens that a model with this context makes of the inputs. They are locked. */
const tokensMax = (size: InputSize, contextLength: number): number => tokensWith(TOKENS_OF_FRAME, size, contextLength);

/**
 * The most tokens that are charged. A provider that dialled in cannot be trusted to add its own words to each of 2,048
 * inputs of one letter, which would cost seventeen times the input.
 */
const plausibleTokens = (size: InputSize, { endpoint, model }: Pick<Offer, 'endpoint' | 'model'>): number =>
  tokensWith(endpoint.kind === 'direct' ? TOKENS_OF_FRAME : TOKENS_OF_ENDS, size, model!.contextLength);

const tokensWith = (frame: number, { each }: InputSize, contextLength: number): number =>
  each.reduce((sum, one) => sum + Math.min(one + frame, contextLength), 0);

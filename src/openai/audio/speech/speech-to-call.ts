import type { Caller } from '#accounts';
import {
  capCost,
  type CallRequest,
  lowestCap,
  MAX_COST_HEADER,
  NO_PREFERENCES,
  type RequestAdapter,
  requestedQuote,
  requestedSession,
  singleRequest,
  toPreferences,
  wantsReceipt,
} from '#call';
import { readFieldRefusal } from '#config/refused-cap';
import { MODEL_KINDS } from '#config/model-kinds';
import { RefusedFields } from '#call/refused-fields';
import type { Offer } from '#catalog';
import type { PaymentAttempt } from '#payments';
import { requireKind } from '../../model-kinds.ts';
import { FOR_THE_GATEWAY, takesField } from '../forwarded-fields.ts';
import { type SpeechBody, SPEECH_PARAMETERS } from './speech-schema.ts';
import { boundAsUsage, measureText, pricedByToken, speechBound } from './speech-use.ts';
import { createSpeechReader, type SpeechResult } from './speech-reader.ts';

export interface AudioContext {
  readonly caller: Caller;
  readonly payment: PaymentAttempt | null;
  readonly requestId: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly replyBytesMax: number;
  readonly receipts: 'always' | 'on-request';
}

export interface AudioCall<R> {
  readonly request: CallRequest<R, Uint8Array>;
  /** Names of the fields that the latest offer did not get. */
  readonly dropped: () => readonly string[];
}

const SENT: ReadonlySet<string> = new Set(['input', ...SPEECH_PARAMETERS]);
/** The gateway decides it for each offer, and answers in either form. */
const STREAM_FORMAT = 'stream_format';

/** Turns a checked body into a request for the pipeline. Throws GatewayError `invalid_request`. */
export function speechToCall(body: SpeechBody, context: AudioContext): AudioCall<SpeechResult> {
  const { caller, headers, requestId, replyBytesMax, payment } = context;
  const size = measureText(body);
  let dropped: readonly string[] = [];
  const refused = new RefusedFields();
  const asksUsage = (offer: Offer) => pricedByToken(offer) && !refused.has(offer, STREAM_FORMAT);
  const adapter: RequestAdapter<SpeechResult> = {
    request(offer) {
      const forwarded = bodyFor(body, offer, asksUsage(offer));
      dropped = forwarded.dropped;
      return {
        method: 'POST',
        path: MODEL_KINDS.speech.paths[0],
        headers: {
          'content-type': 'application/json',
          accept: asksUsage(offer) ? 'text/event-stream, audio/*' : 'audio/*',
          'x-request-id': requestId,
        },
        body: Buffer.from(JSON.stringify(forwarded.body)),
      };
    },
    reader: (offer) => createSpeechReader({ size, bound: speechBound(size, offer), offer, replyBytesMax }),
    reform(offer, status, answer) {
      const refusal = asksUsage(offer) ? readFieldRefusal(status, answer, STREAM_FORMAT) : null;
      if (refusal === null) return false;
      refused.add(offer, STREAM_FORMAT, refusal);
      return true;
    },
    accepted: (offer) => refused.learn(offer),
  };
  const request: CallRequest<SpeechResult, Uint8Array> = {
    ...commonRequest(body, context),
    stream: body.stream_format === 'sse',
    // The voices of one model differ between providers.
    stickyKey: `${caller.account} ${requestedSession(body, headers) ?? `speech ${body.model}`}`,
    adapter: singleRequest(adapter),
    estimate(offer) {
      requireKind(offer, 'speech');
      return boundAsUsage(speechBound(size, offer));
    },
    wantsReceipt: wantsReceipt(body.stream_format === 'sse', context),
    ...(payment ? { payment } : {}),
  };
  return { request: capped(request, body, context), dropped: () => dropped };
}

type CommonBody = Pick<SpeechBody, 'model' | 'provider' | 'metadata' | 'max_cost'>;

export function commonRequest(body: CommonBody, { caller, requestId, headers }: AudioContext) {
  const traceparent = headers['traceparent'];
  return {
    primitive: 'model',
    caller,
    requestId,
    targets: [body.model],
    preferences: body.provider ? toPreferences(body.provider) : NO_PREFERENCES,
    images: 0,
    metadata: body.metadata ?? null,
    traceparent: typeof traceparent === 'string' ? traceparent : null,
    quote: requestedQuote(null, headers, null),
  } as const;
}

export function capped<R>(
  request: CallRequest<R, Uint8Array>,
  body: Pick<CommonBody, 'max_cost'>,
  { headers }: Pick<AudioContext, 'headers'>,
): CallRequest<R, Uint8Array> {
  const cap = lowestCap([
    ['max_cost', body.max_cost],
    [MAX_COST_HEADER, headers[MAX_COST_HEADER]],
  ]);
  return capCost(request, cap);
}

interface SentBody {
  readonly body: Readonly<Record<string, unknown>>;
  readonly dropped: readonly string[];
}

function bodyFor(speechBody: SpeechBody, offer: Offer, events: boolean): SentBody {
  const body: Record<string, unknown> = { model: offer.model!.upstreamModel };
  const dropped: string[] = [];
  for (const [field, value] of Object.entries(speechBody)) {
    if (FOR_THE_GATEWAY.has(field) || field === STREAM_FORMAT || value === null) continue;
    if (SENT.has(field) || takesField(field, offer)) body[field] = value;
    else dropped.push(field);
  }
  if (events) body[STREAM_FORMAT] = 'sse';
  return { body, dropped };
}

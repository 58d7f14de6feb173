import { GatewayError } from '#errors';
import { formatUsd, type SettledFrame, type Usage } from '#billing/amounts';
import type { ReplySink } from '#http';
import type { Cut, ReplyEnd } from './call.ts';
import { UNREPEATED } from './attempt-error.ts';
import { chargeOfCut } from './endings.ts';
import { wasCharged } from './paid-route.ts';

/* Replies that are useless in part, such as embeddings or an image, and that were cut. */

/** The use of a cut reply: what its provider has reported, null for nothing; and the measure of its request. */
interface CutUse {
  readonly reported: Usage | null;
  readonly input: Usage;
  /** A part of it went out nevertheless. Default false. */
  readonly came?: boolean;
}

/** The end of a cut reply that is useless in part. Its input may be charged, see `chargeOfCut`. */
export function undeliveredEnd<R>(cut: Cut, { reported, input, came = false }: CutUse, result: R): ReplyEnd<R> {
  const charge = chargeOfCut(cut, { came, reported: reported !== null });
  const usage = charge === 'usage' ? reported : charge === 'nothing' ? null : input;
  return {
    usage,
    outcome: usage === null ? 'free' : 'cut',
    estimated: usage !== null && charge !== 'usage',
    finishReason: cut.reason,
    flags: [],
    result,
  };
}

type ToHttp = (error: GatewayError) => {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
};

/**
 * Answers with an error that says what was charged for a cut reply. It is written as an answer, so that a repeat with
 * the same idempotency key gets it again and costs nothing. Returns whether anything was charged.
 */
export function answerUndelivered(
  id: string,
  { settlement, providerName, ...settled }: Pick<SettledFrame, 'settlement' | 'providerName' | 'runCost'>,
  { message, reason }: Cut,
  sink: ReplySink,
  toHttp: ToHttp,
): boolean {
  const cost = formatUsd(settlement.charged);
  const { status, headers, body } = toHttp(
    new GatewayError(
      'unprocessable',
      reason === 'timeout'
        ? `Provider ${providerName} was too slow: ${message}. It may have done the work, so the call costs ${cost} USD. A stream that does not begin costs nothing: ask for one, or for less in one request`
        : `The reply of provider ${providerName} cannot be used: ${message}. Its provider has done the work, which costs ${cost} USD. Ask for less in one request`,
      reason === 'timeout' ? UNREPEATED : {},
    ),
  );
  const text = JSON.stringify(body);
  sink.head(status, {
    ...headers,
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    'x-generation-id': id,
    'x-provider': providerName,
    'x-cost-usd': cost,
  });
  sink.end(text);
  return wasCharged({ settlement, ...settled });
}

import { GatewayError } from '#errors';
import { type CutReply, formatUsd, type MicroUsd, type SettledFrame, type Usage } from '#billing/amounts';
import type { ReplySink } from '#http';
import type { Cut, ReplyEnd } from './call.ts';
import { UNREPEATED } from './attempt-error.ts';
import { chargeOfCut } from './endings.ts';
import { spentOn } from './paid-route.ts';

/* Replies that were cut: what those cost that are useless in part, such as an image, and the errors of all. */

/** The use of a cut reply: what its provider has reported, null for nothing; and the measure of its request. */
interface CutUse {
  readonly reported: Usage | null;
  readonly input: Usage;
  /** A part of it went out nevertheless. Default false. */
  readonly came?: boolean;
}

/**
 * The end of a cut reply that is useless in part. Its input may be charged, see `chargeOfCut`. `use`: null for one that
 * costs nothing.
 */
export function undeliveredEnd<R>(cut: Cut, use: CutUse | null, result: R): ReplyEnd<R> {
  const { reported = null, input = null, came = false } = use ?? {};
  const charge = use === null ? 'nothing' : chargeOfCut(cut, { came, reported: reported !== null });
  const usage = charge === 'usage' ? reported : charge === 'nothing' ? null : input;
  return {
    usage,
    outcome: usage === null ? 'free' : 'cut',
    estimated: usage !== null && charge !== 'usage',
    finishReason: cut.reason,
    flags: [],
    cut: cutReply(cut, came ? 'partly' : 'nothing'),
    result,
  };
}

/** The mark of a cut reply. `delivered`: `begun` if its client has got the beginning of a stream, without a word. */
export const cutReply = (
  { reason, message }: Pick<CutReply, 'reason' | 'message'>,
  delivered: 'nothing' | 'begun' | 'partly',
): CutReply => ({
  reason,
  message,
  undelivered: delivered !== 'partly',
  code: delivered === 'nothing' ? 'unprocessable' : 'reply_cut',
});

/**
 * The error that the client of a cut reply gets. `settled`: who served, and what the call costs; without it, the error
 * at the end of an answer that had begun.
 */
export function errorOfCut(
  { code, reason, message, undelivered }: CutReply,
  settled?: { readonly providerName: string; readonly charged: MicroUsd },
): GatewayError {
  if (settled === undefined || code === 'reply_cut')
    return new GatewayError(
      'reply_cut',
      `The reply was cut: ${message}. ${undelivered ? 'The input that its provider took' : 'The part that arrived'} is charged`,
    );
  const cost = formatUsd(settled.charged);
  return reason === 'timeout'
    ? new GatewayError(
        code,
        `Provider ${settled.providerName} was too slow: ${message}. It may have done the work, so the call costs ${cost} USD. A stream that does not begin costs nothing: ask for one, or for less in one request`,
        UNREPEATED,
      )
    : new GatewayError(
        code,
        `The reply of provider ${settled.providerName} cannot be used: ${message}. Its provider has done the work, which costs ${cost} USD. Ask for less in one request`,
      );
}

type ToHttp = (error: GatewayError) => {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
};

/**
 * Answers with the error of a cut reply. It is written as an answer, so that a repeat with the same idempotency key
 * gets it again and costs nothing. Returns whether anything was charged.
 */
export function answerUndelivered(
  id: string,
  { settlement, runCost, providerName }: Pick<SettledFrame, 'settlement' | 'providerName' | 'runCost'>,
  cut: CutReply,
  sink: ReplySink,
  toHttp: ToHttp,
): boolean {
  const { charged } = settlement;
  const error = errorOfCut({ ...cut, code: 'unprocessable' }, { providerName, charged });
  const { status, headers, body } = toHttp(error);
  const text = JSON.stringify(body);
  sink.head(status, {
    ...headers,
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    'x-generation-id': id,
    'x-provider': providerName,
    'x-cost-usd': formatUsd(spentOn({ settlement, runCost })),
  });
  sink.end(text);
  return spentOn({ settlement, runCost }) > 0n;
}

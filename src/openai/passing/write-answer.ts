import { GatewayError } from '#errors';
import { isObject } from '#wire';
import type { ReplySink } from '#http';
import { formatUsd, toUsdNumber, type Settlement } from '#billing/amounts';
import { answerUndelivered, onceSettled, type StartedProviderCall, wasCharged } from '#gateway';
import { addAlteredHeaders } from '../chat/altered-headers.ts';
import type { Undelivered } from './passed-route.ts';

/** How an answer in one piece is written. */
interface AnswerOptions<R> {
  readonly dropped: () => readonly string[];
  /** Names the answer in errors. */
  readonly noun: string;
  /** An error in the form of the route. */
  readonly toHttp: Parameters<typeof answerUndelivered>[4];
  /** The bytes of the answer, in pieces, at least one. */
  readonly pieces: (result: R, settlement: Settlement, providerName: string) => readonly Uint8Array[];
  readonly onError: (error: unknown) => void;
}

/**
 * Writes the answer of a call to its client, after the settlement. Resolves with whether anything was charged; false if
 * the client is gone. Throws the errors of the call, and GatewayError if there is no result.
 */
export const writeAnswer = <R>(
  opened: StartedProviderCall<R | Undelivered | null>,
  sink: ReplySink,
  { dropped, noun, toHttp, pieces: piecesOf, onError }: AnswerOptions<R>,
): Promise<boolean> =>
  onceSettled(opened, sink, onError, (settled) => {
    const { result } = settled;
    if (result === null)
      throw new GatewayError('provider_unavailable', `The ${noun.toLowerCase()} did not arrive in time`);
    if (isUndelivered(result)) return answerUndelivered(opened.id, settled, result.undelivered, sink, toHttp);
    const pieces = piecesOf(result, settled.settlement, settled.providerName);
    const headers: Record<string, string | number> = {
      'content-type': 'application/json; charset=utf-8',
      'content-length': pieces.reduce((sum, { byteLength }) => sum + byteLength, 0),
      'x-generation-id': opened.id,
      'x-provider': settled.providerName,
      'x-cost-usd': formatUsd(settled.settlement.charged),
    };
    addAlteredHeaders(headers, { dropped: dropped(), maxTokens: null });
    if (settled.receipt !== null) headers['x-receipt'] = settled.receipt;
    sink.head(200, headers);
    pieces.forEach((piece, index) => (index === pieces.length - 1 ? sink.end(piece) : sink.write(piece)));
    return wasCharged(settled);
  });

const isUndelivered = (result: unknown): result is Undelivered => isObject(result) && 'undelivered' in result;

/** The members of `usage` that say what a call cost. */
export const costMembers = ({ charged, fee }: Settlement) => ({
  cost: toUsdNumber(charged),
  cost_details: {
    charged_usd: formatUsd(charged),
    fee_usd: formatUsd(fee),
    // Clients of this API parse both members as numbers, and fail if one is missing.
    upstream_inference_prompt_cost: toUsdNumber(charged),
    upstream_inference_completions_cost: 0,
  },
});

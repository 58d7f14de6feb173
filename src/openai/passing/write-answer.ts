import type { ReplySink } from '#http';
import { formatUsd, toUsdNumber, type Settlement } from '#billing/amounts';
import { onceSettled, type StartedProviderCall, wasCharged } from '#gateway';
import { addAlteredHeaders } from '../chat/altered-headers.ts';

/** How an answer in one piece is written. */
interface AnswerOptions<R> {
  readonly dropped: () => readonly string[];
  /** The bytes of the answer, in pieces, at least one. Throws GatewayError if there is no result. */
  readonly pieces: (
    result: R | null,
    settlement: Settlement,
    providerName: string,
  ) => readonly Uint8Array[] | Promise<readonly Uint8Array[]>;
  readonly onError: (error: unknown) => void;
}

/**
 * Writes the answer of a call to its client, after the settlement. Resolves with whether anything was charged; false if
 * the client is gone. Throws the errors of the call.
 */
export const writeAnswer = <R>(
  opened: StartedProviderCall<R | null>,
  sink: ReplySink,
  { dropped, pieces: piecesOf, onError }: AnswerOptions<R>,
): Promise<boolean> =>
  onceSettled(opened, sink, onError, async (settled) => {
    const pieces = await piecesOf(settled.result, settled.settlement, settled.providerName);
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

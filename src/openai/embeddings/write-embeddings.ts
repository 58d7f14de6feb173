import { GatewayError, type ReplySink } from '#wire';
import { formatUsd, toUsdNumber, type SettledFrame } from '#billing/amounts';
import { onceSettled, type StartedProviderCall, wasCharged } from '#gateway';
import { addAlteredHeaders } from '../reply/altered-headers.ts';
import type { EmbeddingsTail } from './embeddings-reader.ts';

/**
 * Writes the embeddings of a call to its client, after the settlement. Resolves with whether anything was charged;
 * false if the client is gone. Throws the errors of the call.
 */
export const writeEmbeddings = (
  opened: StartedProviderCall,
  dropped: () => readonly string[],
  sink: ReplySink,
  onError: (error: unknown) => void,
): Promise<boolean> =>
  onceSettled(opened, sink, onError, (settled) => {
    if (settled.tail === null) throw new GatewayError('provider_unavailable', 'The embeddings did not arrive in time');
    const pieces = piecesOf(settled, opened.call.service);
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
    const last = pieces.pop()!;
    for (const piece of pieces) sink.write(piece);
    sink.end(last);
    return wasCharged(settled);
  });

/** The provider's bytes, with the name that was called and the billed usage. Not empty. */
function piecesOf({ tail, settlement }: SettledFrame, service: string): Uint8Array[] {
  const { bytes, members, usage } = tail as EmbeddingsTail;
  const { charged, fee } = settlement;
  const billed = {
    ...usage,
    cost: toUsdNumber(charged),
    cost_details: {
      charged_usd: formatUsd(charged),
      fee_usd: formatUsd(fee),
      // Clients of this API parse both members as numbers, and fail if one is missing.
      upstream_inference_prompt_cost: toUsdNumber(charged),
      upstream_inference_completions_cost: 0,
    },
  };
  const values = { usage: JSON.stringify(billed), model: JSON.stringify(service) };
  const pieces: Uint8Array[] = [];
  let at = 0;
  for (const { name, start, end } of members) {
    pieces.push(bytes.subarray(at, start), Buffer.from(values[name]));
    at = end;
  }
  const missing = (['model', 'usage'] as const).filter((name) => !members.some((member) => member.name === name));
  if (missing.length === 0) return [...pieces, bytes.subarray(at)];
  const brace = bytes.lastIndexOf('}');
  const added = missing.map((name) => `,"${name}":${values[name]}`).join('');
  return [...pieces, bytes.subarray(at, brace), Buffer.from(`${added}}`)];
}

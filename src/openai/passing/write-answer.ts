import { GatewayError } from '#errors';
import { type ClientSink, type ReplySink, toGatewayError, writeSlices } from '#http';
import { formatUsd, toUsdNumber, type Settlement } from '#billing/amounts';
import { answerUndelivered, errorOfCut, type StartedProviderCall, spentOn } from '#call';
import { addAlteredHeaders } from '../chat/request/altered-headers.ts';

interface WholeAnswerOptions<R> {
  readonly dropped: () => readonly string[];
  readonly noun: string;
  readonly client: Pick<ClientSink, 'cut'>;
  /** An error in the form of the route. */
  readonly toHttp: Parameters<typeof answerUndelivered>[4];
  readonly pieces: (
    result: R,
    settlement: Settlement,
    providerName: string,
  ) => readonly Uint8Array[] | Promise<readonly Uint8Array[]>;
  readonly onError: (error: unknown) => void;
}

/**
 * Writes the answer of a call to its client: the beginning of a large one as it comes, and the end, which is nearly
 * always all of it, after the settlement. Resolves with whether anything was charged; false if the client is gone.
 * Throws the errors of the call before the first byte, and GatewayError if there is no result.
 */
export async function writeAnswer<R>(
  { id, frames }: StartedProviderCall<R | null, Uint8Array>,
  sink: ReplySink,
  { dropped, noun, toHttp, client, pieces: piecesOf, onError }: WholeAnswerOptions<R>,
): Promise<boolean> {
  const iterator = frames[Symbol.asyncIterator]();
  let provider = '';
  let begun = false;
  const begin = (more: Readonly<Record<string, string | number>>) => {
    if (begun) return;
    begun = true;
    const headers: Record<string, string | number> = {
      'content-type': 'application/json; charset=utf-8',
      'x-generation-id': id,
      'x-provider': provider,
      ...more,
    };
    addAlteredHeaders(headers, { dropped: dropped(), maxTokens: null });
    sink.head(200, headers);
  };
  try {
    for (;;) {
      const next = await iterator.next();
      if (sink.closed) return false;
      if (next.done) throw new GatewayError('internal', 'Internal error');
      const { value } = next;
      if (value.type === 'head') provider = value.provider.name;
      if (value.type === 'data') {
        begin({});
        await writeSlices(value.data, sink);
      }
      if (value.type !== 'settled') continue;
      const { result, settlement, providerName, receipt, cut } = value;
      provider = providerName;
      if (cut && !begun) return answerUndelivered(id, value, cut, sink, toHttp);
      if (cut) throw errorOfCut(cut, { providerName, charged: settlement.charged });
      if (result === null)
        throw new GatewayError('provider_unavailable', `The ${noun.toLowerCase()} did not arrive in time`);
      const pieces = await piecesOf(result, settlement, providerName);
      begin({
        'content-length': pieces.reduce((sum, { byteLength }) => sum + byteLength, 0),
        'x-cost-usd': formatUsd(settlement.charged),
        ...(receipt === null ? {} : { 'x-receipt': receipt }),
      });
      pieces.forEach((piece, index) => (index === pieces.length - 1 ? sink.end(piece) : sink.write(piece)));
      return spentOn(value) > 0n;
    }
  } catch (error) {
    if (sink.closed) return false;
    if (!begun) throw error;
    if (toGatewayError(error).code === 'internal') onError(error);
    // What ends like a whole answer would be taken for one.
    client.cut();
    sink.fail(NOTHING);
    return false;
  } finally {
    // This has no effect after the end. If the client left, the call goes on and is settled.
    iterator.return?.().catch(onError);
  }
}

const NOTHING = new Uint8Array(0);

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

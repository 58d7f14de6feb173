import { endInSlices, type ReplySink } from '#wire';
import { formatUsd } from '#billing/amounts';
import { onceSettled, type StartedProviderCall, wasCharged } from '#gateway';
import type { Answer } from './image-answer.ts';
import type { ImageAsk } from './request/image-ask.ts';

/**
 * Writes the images of a call to its client, after the settlement. Resolves with whether anything was charged; false
 * if the client is gone. Throws the errors of the call.
 */
export const writeImages = (
  opened: StartedProviderCall,
  ask: ImageAsk,
  answer: Answer,
  sink: ReplySink,
  onError: (error: unknown) => void,
): Promise<boolean> =>
  onceSettled(opened, sink, onError, async (settled) => {
    const { id, call } = opened;
    const { headers, length, pieces } = answer(settled, {
      id,
      model: call.service,
      created: Math.floor(call.startedAt / 1000),
      seed: ask.seed,
      provider: settled.providerName,
      inputs: ask.edit?.images ?? null,
    });
    sink.head(200, {
      ...headers,
      'content-length': length,
      'x-generation-id': id,
      'x-provider': settled.providerName,
      'x-cost-usd': formatUsd(settled.settlement.charged),
      ...(settled.receipt === null ? {} : { 'x-receipt': settled.receipt }),
    });
    await endInSlices(pieces(), sink);
    return wasCharged(settled);
  });

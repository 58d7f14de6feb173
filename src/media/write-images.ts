import { endInSlices, type ReplySink, writeSlices, toGatewayError } from '#http';
import { STREAM_HEADERS } from '#wire';
import { GatewayError } from '#errors';
import { formatUsd } from '#billing/amounts';
import { answerUndelivered, errorOfCut, onceSettled, READ_ON, type StartedProviderCall, spentOn } from '#call';
import type { ImageAnswerForm, UsageForm } from './image-answer.ts';
import type { ImagesResult } from './reply/image-reader.ts';
import type { ImageAsk, ImageStream } from './request/image-ask.ts';
import { completedEvent, errorEvent } from './reply/image-stream-reader.ts';

/**
 * Writes the images of a call to its client, after the settlement. Resolves with whether anything was charged; false
 * if the client is gone. Throws the errors of the call.
 */
export const writeImages = (
  started: StartedProviderCall<ImagesResult, Uint8Array>,
  ask: ImageAsk,
  answer: ImageAnswerForm,
  sink: ReplySink,
  {
    toHttp,
    onError,
  }: { readonly toHttp: Parameters<typeof answerUndelivered>[4]; readonly onError: (error: unknown) => void },
): Promise<boolean> =>
  onceSettled(started, sink, onError, async (settled) => {
    const { id, call } = started;
    const { cut } = settled;
    if (cut) return answerUndelivered(id, settled, cut, sink, toHttp);
    const { headers, length, pieces } = answer(cameIn(settled.result), settled.settlement, {
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
    return spentOn(settled) > 0n;
  });

/** Throws GatewayError for a call that ended before it had a result. */
function cameIn(result: ImagesResult | null): ImagesResult {
  if (result === null) throw new GatewayError('provider_unavailable', 'The images did not arrive in time');
  return result;
}

interface StreamOptions {
  readonly stream: ImageStream;
  readonly seed: number | null;
  readonly usage: UsageForm;
  readonly toHttp: Parameters<typeof answerUndelivered>[4];
  readonly errorBody: (error: GatewayError) => object;
  readonly onError: (error: unknown) => void;
}

const HEADERS = { 'content-type': 'text/event-stream; charset=utf-8', ...STREAM_HEADERS };

/**
 * Writes a call as a stream: partial images as they come, and the final images, one after the other, after the
 * settlement. The event of the last one has the cost of all. Resolves with whether anything was charged; false if the
 * client is gone. Throws the errors of the call before the first event.
 */
export async function writeStream(
  { id, call, frames }: StartedProviderCall<ImagesResult, Uint8Array>,
  { stream, seed, usage, toHttp, errorBody, onError }: StreamOptions,
  sink: ReplySink,
): Promise<boolean> {
  const iterator = frames[Symbol.asyncIterator]();
  let provider = '';
  let readsOn = false;
  let begun = false;
  const begin = () => {
    const more = readsOn ? READ_ON : {};
    if (!begun) sink.head(200, { ...HEADERS, 'x-generation-id': id, 'x-provider': provider, ...more });
    begun = true;
  };
  try {
    for (;;) {
      const next = await iterator.next();
      if (sink.closed) return false;
      if (next.done) throw new GatewayError('internal', 'Internal error');
      const { value } = next;
      if (value.type === 'head') {
        provider = value.provider.name;
        readsOn = value.isReadOn === true;
      }
      if (value.type === 'data') {
        begin();
        await writeSlices(value.data, sink);
      }
      if (value.type !== 'settled') continue;
      const { cut, settlement, providerName } = value;
      if (cut && !begun) return answerUndelivered(id, value, cut, sink, toHttp);
      if (cut) throw errorOfCut(cut, { providerName, charged: settlement.charged });
      const result = cameIn(value.result);
      provider = providerName;
      begin();
      const { images, raw } = result;
      const { created: _theirs, usage: _counts, output_format: _named, ...rest } = raw;
      const created = Math.floor(call.startedAt / 1000);
      const cost = {
        usage: usage(result, settlement),
        ...(value.receipt === null ? {} : { receipt: value.receipt }),
      };
      for (const [index, image] of images.entries()) {
        const used = image.seed ?? seed;
        const isLast = index === images.length - 1;
        const [before, base64, after] = completedEvent(stream.eventPrefix, image, {
          ...(stream.inOpenrouter ? { created, media_type: `image/${image.format}` } : { created_at: created }),
          ...rest,
          ...(stream.partialImages === null ? { index } : {}),
          ...(used === null ? {} : { seed: used }),
          ...(isLast ? cost : {}),
        });
        await writeSlices(before!, sink);
        await writeSlices(base64!, sink);
        if (!isLast) await writeSlices(after!, sink);
        else if (!sink.closed) sink.end(after!);
      }
      return spentOn(value) > 0n;
    }
  } catch (error) {
    if (sink.closed) return false;
    if (!begun) throw error;
    const known = toGatewayError(error);
    if (known.code === 'internal') onError(error);
    sink.fail(errorEvent(errorBody(known)));
    return false;
  } finally {
    // This has no effect after the end. If the client left, the call goes on and is settled.
    iterator.return?.().catch(onError);
  }
}

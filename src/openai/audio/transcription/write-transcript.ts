import { type Dialect, type ReplySink, toGatewayError, toHttpError, writeSlices } from '#http';
import { GatewayError } from '#errors';
import { formatUsd } from '#billing/amounts';
import { onceSettled, type StartedProviderCall, wasCharged } from '#gateway';
import { addAlteredHeaders } from '../../chat/altered-headers.ts';
import { withCost } from '../shown-usage.ts';
import { type TranscriptFormat, TRANSCRIPT_TYPES } from './transcription-schema.ts';
import { eventOf, type TranscriptionResult } from './transcription-reader.ts';

type Started = StartedProviderCall<TranscriptionResult, Uint8Array>;

interface WriteOptions {
  readonly format: TranscriptFormat;
  readonly dialect: Dialect;
  readonly dropped: () => readonly string[];
  readonly onError: (error: unknown) => void;
}

/**
 * Writes a transcript to its client, after the settlement. Resolves with whether anything was charged; false if the
 * client is gone. Throws the errors of the call.
 */
export const writeTranscript = (
  opened: Started,
  { format, dropped, onError }: WriteOptions,
  sink: ReplySink,
): Promise<boolean> =>
  onceSettled(opened, sink, onError, async (settled) => {
    const { result, settlement, receipt } = settled;
    if (result === null || result.cut !== null) throw cutOff(result?.cut?.message);
    const { transcript, usage } = result;
    const bytes = Buffer.isBuffer(transcript)
      ? transcript
      : Buffer.from(JSON.stringify({ ...transcript, usage: withCost(usage, settlement, receipt) }));
    const headers: Record<string, string | number> = {
      'content-type': TRANSCRIPT_TYPES[format] ?? 'application/json; charset=utf-8',
      'content-length': bytes.byteLength,
      'x-generation-id': opened.id,
      'x-provider': settled.providerName,
      'x-cost-usd': formatUsd(settlement.charged),
      ...(receipt === null ? {} : { 'x-receipt': receipt }),
    };
    addAlteredHeaders(headers, { dropped: dropped(), maxTokens: null });
    sink.head(200, headers);
    sink.end(bytes);
    return wasCharged(settled);
  });

/**
 * Writes a transcript as events, as they come; the last one follows the settlement, with the cost. Resolves with
 * whether anything was charged; false if the client is gone. Throws the errors of the call before the first event.
 */
export async function streamTranscript(
  { id, frames }: Started,
  { dialect, dropped, onError }: WriteOptions,
  sink: ReplySink,
): Promise<boolean> {
  const iterator = frames[Symbol.asyncIterator]();
  let provider = '';
  let begun = false;
  const begin = () => {
    if (begun) return;
    begun = true;
    const headers: Record<string, string | number> = {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
      'x-generation-id': id,
      'x-provider': provider,
    };
    addAlteredHeaders(headers, { dropped: dropped(), maxTokens: null });
    sink.head(200, headers);
  };
  try {
    for (;;) {
      // oxlint-disable-next-line no-await-in-loop -- frames come one after the other
      const next = await iterator.next();
      if (sink.closed) return false;
      if (next.done) throw new GatewayError('internal', 'Internal error');
      const { value } = next;
      if (value.type === 'head') provider = value.provider.name;
      if (value.type === 'data') {
        begin();
        // oxlint-disable-next-line no-await-in-loop -- events go out in their order
        await writeSlices(value.data, sink);
      }
      if (value.type !== 'settled') continue;
      const { result, settlement, receipt } = value;
      if (result === null || result.cut !== null) throw cutOff(result?.cut?.message);
      provider = value.providerName;
      begin();
      const { transcript, usage } = result;
      // The reader makes an event of a transcript in another format.
      const done = Buffer.isBuffer(transcript) ? {} : transcript;
      sink.end(eventOf({ ...done, usage: withCost(usage, settlement, receipt) }));
      return wasCharged(value);
    }
  } catch (error) {
    if (sink.closed) return false;
    if (!begun) throw error;
    const known = toGatewayError(error);
    if (known.code === 'internal') onError(error);
    sink.fail(Buffer.from(`event: error\n${eventOf({ type: 'error', ...toHttpError(known, dialect).body })}`));
    return false;
  } finally {
    // This has no effect after the end. If the client left, the call goes on and is settled.
    iterator.return?.().catch(onError);
  }
}

const cutOff = (why = 'it did not come in time') =>
  new GatewayError('provider_unavailable', `The transcript was cut: ${why}`);

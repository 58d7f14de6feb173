import { type ClientSink, type ReplySink, toGatewayError, toHttpError, type Dialect, writeSlices } from '#http';
import { GatewayError } from '#errors';
import { formatUsd } from '#billing/amounts';
import { type StartedProviderCall, wasCharged } from '#gateway';
import { addAlteredHeaders } from '../../chat/altered-headers.ts';
import { withCost } from '../shown-usage.ts';
import { type SpeechFormat, speechType } from './speech-schema.ts';
import type { SpeechResult } from './speech-reader.ts';

interface WriteOptions {
  readonly format: SpeechFormat;
  /** Events with the sound in base64, instead of the sound itself. */
  readonly events: boolean;
  readonly dialect: Dialect;
  readonly dropped: () => readonly string[];
  /** The connection, which is cut if the sound breaks off. */
  readonly client: ClientSink;
  readonly onError: (error: unknown) => void;
}

const NOTHING = new Uint8Array(0);

/**
 * Writes speech to its client as it comes; the end follows the settlement. Resolves with whether anything was charged;
 * false if the client is gone. Throws the errors of the call before the first byte.
 */
export async function writeSpeech(
  { id, frames }: StartedProviderCall<SpeechResult, Uint8Array>,
  { format, events, dialect, dropped, client, onError }: WriteOptions,
  sink: ReplySink,
): Promise<boolean> {
  const iterator = frames[Symbol.asyncIterator]();
  let provider = '';
  let begun = false;
  const begin = (first: Uint8Array, more: Readonly<Record<string, string>> = {}) => {
    if (begun) return;
    begun = true;
    const headers: Record<string, string | number> = {
      'content-type': events ? 'text/event-stream; charset=utf-8' : speechType(first, format),
      ...(events ? { 'cache-control': 'no-cache' } : {}),
      'x-generation-id': id,
      'x-provider': provider,
      ...more,
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
        begin(value.data);
        // oxlint-disable-next-line no-await-in-loop -- pieces go out in their order
        await writeSlices(events ? deltaEvent(value.data) : value.data, sink);
      }
      if (value.type !== 'settled') continue;
      const { result, settlement, receipt } = value;
      if (result === null || result.cut !== null) throw cutOff(result?.cut?.message);
      provider = value.providerName;
      begin(NOTHING, {
        'x-cost-usd': formatUsd(settlement.charged),
        ...(receipt === null ? {} : { 'x-receipt': receipt }),
      });
      sink.end(events ? doneEvent(withCost(result.usage, settlement, receipt)) : NOTHING);
      return wasCharged(value);
    }
  } catch (error) {
    if (sink.closed) return false;
    if (!begun) throw error;
    const known = toGatewayError(error);
    if (known.code === 'internal') onError(error);
    // Sound has no place for an error, and what ends like whole sound would be taken for it.
    if (!events) client.cut();
    sink.fail(events ? errorEvent(toHttpError(known, dialect).body) : NOTHING);
    return false;
  } finally {
    // This has no effect after the end. If the client left, the call goes on and is settled.
    iterator.return?.().catch(onError);
  }
}

const cutOff = (why = 'it did not come in time') =>
  new GatewayError('provider_unavailable', `The speech was cut: ${why}`);

const eventOf = (event: object): Buffer => Buffer.from(`data: ${JSON.stringify(event)}\n\n`);

function deltaEvent(sound: Uint8Array): Buffer {
  const bytes = Buffer.from(sound.buffer, sound.byteOffset, sound.byteLength);
  return eventOf({ type: 'speech.audio.delta', audio: bytes.toString('base64') });
}

const doneEvent = (usage: object): Buffer => eventOf({ type: 'speech.audio.done', usage });

const errorEvent = (body: object): Buffer =>
  Buffer.from(`event: error\ndata: ${JSON.stringify({ type: 'error', ...body })}\n\n`);

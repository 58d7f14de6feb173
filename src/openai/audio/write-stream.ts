import { type Dialect, type ReplySink, toGatewayError, toHttpError, writeSlices } from '#http';
import { STREAM_HEADERS } from '#wire';
import { GatewayError } from '#errors';
import { formatUsd, type Settlement } from '#billing/amounts';
import { answerUndelivered, errorOfCut, READ_ON, type StartedProviderCall, spentOn } from '#call';
import { addAlteredHeaders } from '../chat/request/altered-headers.ts';

export interface StreamedAnswer<R> {
  /** Its name in errors. */
  readonly what: string;
  /** The headers of its content. `first`: its first bytes, empty if none came before the end. */
  readonly headersOf: (first: Uint8Array) => Readonly<Record<string, string>>;
  readonly pieceOf: (data: Uint8Array) => Uint8Array;
  readonly endOf: (result: R, settlement: Settlement, receipt: string | null) => Uint8Array;
  /** The last bytes of one that breaks off. */
  readonly brokenOf: (error: GatewayError) => Uint8Array;
  readonly dialect: Dialect;
  readonly dropped: () => readonly string[];
  readonly onError: (error: unknown) => void;
}

const NOTHING = new Uint8Array(0);

/**
 * Writes an answer to its client as it comes; the end follows the settlement. Resolves with whether anything was
 * charged; false if the client is gone. Throws the errors of the call before the first byte.
 */
export async function writeStream<R>(
  { id, frames }: StartedProviderCall<R, Uint8Array>,
  { what, headersOf, pieceOf, endOf, brokenOf, dialect, dropped, onError }: StreamedAnswer<R>,
  sink: ReplySink,
): Promise<boolean> {
  const iterator = frames[Symbol.asyncIterator]();
  let provider = '';
  let readsOn = false;
  let begun = false;
  const begin = (first: Uint8Array, more: Readonly<Record<string, string>> = {}) => {
    if (begun) return;
    begun = true;
    const headers: Record<string, string | number> = {
      ...headersOf(first),
      ...STREAM_HEADERS,
      'x-generation-id': id,
      'x-provider': provider,
      ...(readsOn ? READ_ON : {}),
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
      if (value.type === 'head') {
        provider = value.provider.name;
        readsOn = value.isReadOn === true;
      }
      if (value.type === 'data') {
        begin(value.data);
        await writeSlices(pieceOf(value.data), sink);
      }
      if (value.type !== 'settled') continue;
      const { result, settlement, receipt, cut, providerName } = value;
      if (cut && !begun) return answerUndelivered(id, value, cut, sink, (error) => toHttpError(error, dialect));
      if (cut) throw errorOfCut(cut, { providerName, charged: settlement.charged });
      if (result === null) throw notInTime(what);
      provider = providerName;
      begin(NOTHING, {
        'x-cost-usd': formatUsd(settlement.charged),
        ...(receipt === null ? {} : { 'x-receipt': receipt }),
      });
      sink.end(endOf(result, settlement, receipt));
      return spentOn(value) > 0n;
    }
  } catch (error) {
    if (sink.closed) return false;
    if (!begun) throw error;
    const known = toGatewayError(error);
    if (known.code === 'internal') onError(error);
    sink.fail(brokenOf(known));
    return false;
  } finally {
    // This has no effect after the end. If the client left, the call goes on and is settled.
    iterator.return?.().catch(onError);
  }
}

/** The error of an answer whose call ended before it had a result. */
export const notInTime = (what: string): GatewayError =>
  new GatewayError('provider_unavailable', `The ${what} did not come in time`);

export const EVENTS_TYPE = { 'content-type': 'text/event-stream; charset=utf-8' };

export const eventOf = (event: object): Buffer => Buffer.from(`data: ${JSON.stringify(event)}\n\n`);

export const errorEvent = (error: GatewayError, dialect: Dialect): Buffer =>
  Buffer.concat([ERROR_NAME, eventOf({ type: 'error', ...toHttpError(error, dialect).body })]);

const ERROR_NAME = Buffer.from('event: error\n');

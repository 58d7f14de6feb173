import { type Dialect, type ReplySink, toHttpError } from '#http';
import { formatUsd } from '#billing/amounts';
import { answerUndelivered, onceSettled, type StartedProviderCall, spentOn } from '#call';
import { addAlteredHeaders } from '../../chat/request/altered-headers.ts';
import { withCost } from '../shown-usage.ts';
import { notInTime, errorEvent, eventOf, EVENTS_TYPE, writeStream } from '../write-stream.ts';
import { type TranscriptFormat, TRANSCRIPT_TYPES } from './transcription-schema.ts';
import type { TranscriptionResult } from './transcription-reader.ts';

type Started = StartedProviderCall<TranscriptionResult, Uint8Array>;

interface WriteTranscriptOptions {
  readonly format: TranscriptFormat;
  readonly dialect: Dialect;
  readonly dropped: () => readonly string[];
  readonly onError: (error: unknown) => void;
}

const WHAT = 'transcript';

/**
 * Writes a transcript to its client, after the settlement. Resolves with whether anything was charged; false if the
 * client is gone. Throws the errors of the call.
 */
export const writeTranscript = (
  startedCall: Started,
  { format, dialect, dropped, onError }: WriteTranscriptOptions,
  sink: ReplySink,
): Promise<boolean> =>
  onceSettled(startedCall, sink, onError, async (settled) => {
    const { result, settlement, receipt, cut } = settled;
    if (cut) return answerUndelivered(startedCall.id, settled, cut, sink, (error) => toHttpError(error, dialect));
    if (result === null) throw notInTime(WHAT);
    const { transcript, usage } = result;
    const bytes = Buffer.isBuffer(transcript)
      ? transcript
      : Buffer.from(JSON.stringify({ ...transcript, usage: withCost(usage, settlement, receipt) }));
    const headers: Record<string, string | number> = {
      'content-type': TRANSCRIPT_TYPES[format] ?? 'application/json; charset=utf-8',
      'content-length': bytes.byteLength,
      'x-generation-id': startedCall.id,
      'x-provider': settled.providerName,
      'x-cost-usd': formatUsd(settlement.charged),
      ...(receipt === null ? {} : { 'x-receipt': receipt }),
    };
    addAlteredHeaders(headers, { dropped: dropped(), maxTokens: null });
    sink.head(200, headers);
    sink.end(bytes);
    return spentOn(settled) > 0n;
  });

export const streamTranscript = (
  startedCall: Started,
  { dialect, dropped, onError }: WriteTranscriptOptions,
  sink: ReplySink,
): Promise<boolean> =>
  writeStream(
    startedCall,
    {
      what: WHAT,
      headersOf: () => EVENTS_TYPE,
      pieceOf: (events) => events,
      // The reader makes an event of a transcript in another format.
      endOf: ({ transcript, usage }, settlement, receipt) =>
        eventOf({ ...(Buffer.isBuffer(transcript) ? {} : transcript), usage: withCost(usage, settlement, receipt) }),
      brokenOf: (error) => errorEvent(error, dialect),
      dialect,
      dropped,
      onError,
    },
    sink,
  );

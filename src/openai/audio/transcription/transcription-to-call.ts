import { type CallRequest, type RequestAdapter, requestedSession, singleRequest, wantsReceipt } from '#call';
import { FormBody, MUST_BE } from '#http';
import { tokenizedBytes, type Offer } from '#catalog';

import { requireKind } from '../../model-kinds.ts';
import { FOR_THE_GATEWAY, takesField } from '../forwarded-fields.ts';
import { type MeasuredAudio, MEDIA_TYPES } from '../measure/measure-audio.ts';
import { type AudioCall, type AudioContext, capped, commonRequest } from '../speech/speech-to-call.ts';
import type { Upload } from './read-upload.ts';
import {
  type TranscriptionBody,
  TRANSCRIPTION_PARAMETERS,
  TRANSCRIPTION_ROUTES,
  type TranscriptionRoute,
  transcriptionSchema,
} from './transcription-schema.ts';
import { boundAsUsage, transcriptionBound, type UploadSize } from './transcription-use.ts';
import { createTranscriptionReader, type TranscriptionResult } from './transcription-reader.ts';

const SENT: ReadonlySet<string> = new Set(TRANSCRIPTION_PARAMETERS);
/** Fields whose words a model reads. */
const GUIDING: ReadonlySet<string> = new Set(['prompt', 'keywords', 'language', 'languages', 'known_speaker_names']);

/** Turns a form, whose file was measured, into a request for the pipeline. Throws GatewayError `invalid_request`. */
export function transcriptionToCall(
  route: TranscriptionRoute,
  upload: Upload,
  audio: MeasuredAudio,
  context: AudioContext,
): AudioCall<TranscriptionResult> {
  const { body, fields } = upload;
  const { requestId, replyBytesMax } = context;
  const size = sizeOf(upload, audio);
  const format = body.response_format ?? 'json';
  const stream = body.stream ?? false;
  let dropped: readonly string[] = [];
  const adapter: RequestAdapter<TranscriptionResult> = {
    request(offer) {
      const form = new FormBody();
      // First, so that a server knows the model before the file.
      form.field('model', offer.model!.upstreamModel);
      const sentFields = fields.filter(({ base }) => {
        // A provider would stream to a client that waits for one piece.
        if (base === 'stream' && !route.streams) return false;
        return SENT.has(base) || (!FOR_THE_GATEWAY.has(base) && takesField(base, offer));
      });
      dropped = fields
        .filter((field) => !sentFields.includes(field) && !FOR_THE_GATEWAY.has(field.base))
        .map(({ name }) => name);
      for (const { name, text } of sentFields) form.field(name, text);
      form.file('file', `audio.${audio.format}`, MEDIA_TYPES[audio.format], upload.file);
      const accept = stream ? 'text/event-stream, application/json' : '*/*';
      const headers = { 'content-type': form.contentType, accept, 'x-request-id': requestId };
      return { method: 'POST', path: route.path, headers, body: form.end() };
    },
    reader: (offer) => createTranscriptionReader({ size, format, stream, offer, replyBytesMax }),
  };
  return { request: requestOf(body, size, adapter, context), dropped: () => dropped };
}

export interface QuotedSound extends TranscriptionBody {
  readonly seconds: number;
}

const SECONDS_MAX = 1_000_000;

/** JSON schema of a request for the quote of a transcription: the length of the sound in place of its file. */
export const quotedSoundSchema = {
  ...transcriptionSchema(TRANSCRIPTION_ROUTES[0]!),
  required: ['model', 'seconds'],
  properties: {
    ...transcriptionSchema(TRANSCRIPTION_ROUTES[0]!).properties,
    seconds: {
      type: 'number',
      exclusiveMinimum: 0,
      maximum: SECONDS_MAX,
      [MUST_BE]: `the length of the sound in seconds, at most ${SECONDS_MAX}`,
    },
  },
};

/** The request of a quote, whose consumer says how long the sound is. It cannot be sent. */
export function quotedTranscription(
  body: TranscriptionBody,
  seconds: number,
  context: AudioContext,
): CallRequest<TranscriptionResult, Uint8Array> {
  const audio: MeasuredAudio = { format: 'wav', seconds, secondsHeard: seconds, secondsMax: seconds };
  const textBytes = [...GUIDING].reduce((sum, field) => sum + tokenizedBytes(String(body[field] ?? '')), 0);
  const adapter: RequestAdapter<TranscriptionResult> = {
    request() {
      throw new Error('a request for a quote is not sent');
    },
    reader() {
      throw new Error('a request for a quote is not sent');
    },
  };
  return requestOf(body, { audio, textBytes, samples: 0 }, adapter, context);
}

function requestOf(
  body: TranscriptionBody,
  size: UploadSize,
  adapter: RequestAdapter<TranscriptionResult>,
  context: AudioContext,
): CallRequest<TranscriptionResult, Uint8Array> {
  const { caller, headers, payment } = context;
  const session = requestedSession(body, headers);
  const stream = body.stream ?? false;
  const request: CallRequest<TranscriptionResult, Uint8Array> = {
    ...commonRequest(body, context),
    stream,
    stickyKey: session === null ? null : `${caller.account} ${session}`,
    adapter: singleRequest(adapter),
    estimate(offer: Offer) {
      requireKind(offer, 'transcription');
      return boundAsUsage(transcriptionBound(size, offer));
    },
    wantsReceipt: wantsReceipt(stream, context),
    ...(payment ? { payment } : {}),
  };
  return capped(request, body, context);
}

function sizeOf({ fields }: Upload, audio: MeasuredAudio): UploadSize {
  let textBytes = 0;
  let samples = 0;
  for (const { base, text } of fields) {
    if (base === 'known_speaker_references') samples++;
    else if (!FOR_THE_GATEWAY.has(base)) textBytes += tokenizedBytes(text);
  }
  return { audio, textBytes, samples };
}

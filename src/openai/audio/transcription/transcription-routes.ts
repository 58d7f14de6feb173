import type { FastifyPluginAsync } from 'fastify';
import { dialectOf } from '#http';
import {
  addPaidRoute,
  bodyFrom,
  openCall,
  type PaidRoute,
  type Payer,
  payerOf,
  type StartedProviderCall,
  takeBytes,
} from '#call';
import { NO_PAYMENTS } from '#payments';
import { requireAdmission } from '#auth';
import { type ChatDeps, paidRouteDeps } from '../../routes/chat-routes.ts';
import { measureAudio } from '../measure/measure-audio.ts';
import { usageSchema } from '../shown-usage.ts';
import { createReadUpload, type Upload } from './read-upload.ts';
import { TRANSCRIPTION_ROUTES, type TranscriptionRoute, transcriptionForm } from './transcription-schema.ts';
import { quotedTranscription, transcriptionToCall } from './transcription-to-call.ts';
import type { TranscriptionResult } from './transcription-reader.ts';
import { streamTranscript, writeTranscript } from './write-transcript.ts';

interface TranscriptionRequest extends Payer {
  readonly upload: Upload;
}

type StartedTranscription = StartedProviderCall<TranscriptionResult, Uint8Array>;

/** Less than any sound: what it costs is the least that a call costs. */
const LEAST_S = 0.001;

export function transcriptionRoutes(deps: ChatDeps): FastifyPluginAsync {
  const { pipeline, payments = NO_PAYMENTS, config } = deps;
  const { limits, upstream, billing } = config;
  return async (app) => {
    const admissionOf = requireAdmission(app, pipeline.admit, true);
    takeBytes(app, limits.mediaBodyBytesMax, 1, /^multipart\/form-data(?:;|$)/i);
    for (const each of TRANSCRIPTION_ROUTES) addPaidRoute(app, paidRouteDeps(deps, admissionOf), paidRouteOf(each));

    function paidRouteOf(route: TranscriptionRoute): PaidRoute<TranscriptionRequest, StartedTranscription> {
      const readUpload = createReadUpload(route, limits);
      return {
        path: route.path,
        options: {
          schema: {
            ...route.described,
            tags: ['Audio'],
            body: { content: { 'multipart/form-data': { schema: transcriptionForm(route) } } },
            response: { 200: answerOf(route) },
          },
          config: { clientsAppend: true },
        },
        async decode(request, admitted) {
          const upload = readUpload(bodyFrom(request), request.headers);
          return { upload, ...(await payerOf(payments, request.headers, admitted, upload.digest)) };
        },
        answer({ upload, caller, payment }, { request, onError }) {
          const { body } = upload;
          const context = {
            caller,
            payment,
            requestId: request.id,
            headers: request.headers,
            replyBytesMax: upstream.replyBytesMax,
            receipts: billing.receipts,
          };
          let dropped: () => readonly string[] = () => [];
          const format = body.response_format ?? 'json';
          const options = { format, dialect: dialectOf(request), dropped: () => dropped(), onError };
          const write = body.stream ? streamTranscript : writeTranscript;
          return {
            noun: 'A transcription',
            model: body.model,
            async open(callId, gone) {
              // Whoever cannot pay for any sound is refused before the file is measured.
              const share = await pipeline.shareOf(quotedTranscription(body, LEAST_S, context));
              const audio = await measureAudio(upload.file, share);
              const audioCall = transcriptionToCall(route, upload, audio, context);
              dropped = audioCall.dropped;
              return openCall(pipeline, audioCall.request, callId, gone);
            },
            write: (startedCall, sink) => write(startedCall, options, sink),
          };
        },
      };
    }
  };
}

const answerOf = ({ streams, formats }: TranscriptionRoute) => ({
  description: streams ? 'The transcript, or its events.' : 'The translation.',
  content: {
    'application/json': { schema: transcriptSchema },
    'text/plain': { schema: { type: 'string' } },
    ...(formats.includes('vtt') ? { 'text/vtt': { schema: { type: 'string' } } } : {}),
    ...(streams ? { 'text/event-stream': { schema: transcriptEventSchema } } : {}),
  },
});

const transcriptSchema = {
  title: 'Transcript',
  type: 'object',
  required: ['text', 'usage'],
  additionalProperties: true,
  properties: {
    text: { type: 'string' },
    duration: { type: 'number', description: 'Seconds, as the provider says.' },
    language: { type: 'string' },
    segments: { type: 'array', items: { type: 'object', additionalProperties: true } },
    usage: usageSchema,
  },
} as const;

const transcriptEventSchema = {
  title: 'TranscriptEvent',
  type: 'object',
  required: ['type'],
  additionalProperties: true,
  properties: {
    type: {
      type: 'string',
      enum: ['transcript.text.delta', 'transcript.text.segment', 'transcript.text.done', 'error'],
    },
    delta: { type: 'string', description: 'The next words.' },
    text: { type: 'string', description: 'All words, in the last event.' },
    usage: usageSchema,
  },
} as const;

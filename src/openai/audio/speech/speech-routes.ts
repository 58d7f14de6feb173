import { hash } from 'node:crypto';
import type { FastifyPluginAsync } from 'fastify';
import { dialectOf, PARSED_JSON } from '#http';
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
import { MODEL_KINDS } from '#config/model-kinds';
import { NO_PAYMENTS } from '#payments';
import { requireAdmission } from '#auth';
import { createKeptReplies } from '#files';
import { type ChatDeps, paidRouteDeps } from '../../routes/chat-routes.ts';
import { createReadBody } from '../../translated/translated-route.ts';
import { usageSchema } from '../shown-usage.ts';
import { type SpeechBody, speechSchema, SPEECH_TYPES } from './speech-schema.ts';
import { speechToCall } from './speech-to-call.ts';
import type { SpeechResult } from './speech-reader.ts';
import { writeSpeech } from './write-speech.ts';

const {
  summary,
  paths: [PATH],
} = MODEL_KINDS.speech;

type StartedSpeech = StartedProviderCall<SpeechResult, Uint8Array>;

interface SpeechRequest extends Payer {
  readonly body: SpeechBody;
}

export function speechRoutes(deps: ChatDeps): FastifyPluginAsync {
  const { pipeline, payments = NO_PAYMENTS, config, blobs } = deps;
  const { limits, upstream, billing } = config;
  const readBody = createReadBody<SpeechBody>(limits, speechSchema);
  const replyFiles = blobs ? createKeptReplies(blobs, upstream.imagesReplyBytesMax) : null;

  const route: PaidRoute<SpeechRequest, StartedSpeech> = {
    path: PATH,
    options: {
      schema: {
        summary,
        operationId: 'createSpeech',
        description:
          'Speaks a text, by a model whose output is speech. The price is per character or per token. The sound comes as it is made; its cost is in the record of the call, and in the last event with `stream_format: "sse"`. Fields that are not listed here go to providers that list them.',
        tags: ['Audio'],
        consumes: ['application/json'],
        body: speechSchema,
        response: {
          200: {
            description: 'The sound, or its events.',
            content: {
              ...Object.fromEntries(
                Object.values(SPEECH_TYPES).map((type) => [type, { schema: { type: 'string', format: 'binary' } }]),
              ),
              'text/event-stream': { schema: speechEventSchema },
            },
          },
        },
      },
      config: { clientsAppend: true },
    },
    async decode(request, admitted) {
      const { headers } = request;
      const bytes = bodyFrom(request);
      const body = await readBody(bytes, headers);
      const bodyHash = () => hash('sha256', `${PATH} ${hash('sha256', bytes)}`);
      return { body, ...(await payerOf(payments, headers, admitted, bodyHash)) };
    },
    answer({ body, caller, payment }, { request, client, onError }) {
      const { request: call, dropped } = speechToCall(body, {
        caller,
        payment,
        requestId: request.id,
        headers: request.headers,
        replyBytesMax: upstream.imagesReplyBytesMax,
        receipts: billing.receipts,
      });
      const options = {
        format: body.response_format ?? 'mp3',
        events: body.stream_format === 'sse',
        dialect: dialectOf(request),
        dropped,
        client,
        onError,
      };
      return {
        noun: 'Speech',
        model: body.model,
        open: (callId, gone) => openCall(pipeline, call, callId, gone),
        write: (startedCall, sink) => writeSpeech(startedCall, options, sink),
        ...(replyFiles === null
          ? {}
          : {
              takeKey: (takenKey) => replyFiles.repeat(caller.account, takenKey, client),
              largeAnswers: {
                bytesMax: replyFiles.bytesMax,
                keep: ({ id }, head, chunks) => replyFiles.keep(caller.account, id, head, chunks).catch(onError),
              },
            }),
      };
    },
  };
  return async (app) => {
    const admissionOf = requireAdmission(app, pipeline.admit, true);
    takeBytes(app, limits.chatBodyBytesMax, PARSED_JSON);
    addPaidRoute(app, paidRouteDeps(deps, admissionOf), route);
  };
}

const speechEventSchema = {
  title: 'SpeechEvent',
  type: 'object',
  required: ['type'],
  additionalProperties: true,
  properties: {
    type: { type: 'string', enum: ['speech.audio.delta', 'speech.audio.done', 'error'] },
    audio: { type: 'string', description: 'Base64 of a part of the sound.' },
    usage: usageSchema,
  },
} as const;

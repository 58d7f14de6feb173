import type { FastifyPluginAsync } from 'fastify';
import { type CallRequest, withModel } from '#call';
import type { ModelKind } from '#config/model-kinds';
import { createCheck } from '#http';
import { type SpeechBody, SPEECH_PARAMETERS, speechSchema } from './audio/speech/speech-schema.ts';
import { speechRoutes } from './audio/speech/speech-routes.ts';
import { type AudioContext, speechToCall } from './audio/speech/speech-to-call.ts';
import { transcriptionRoutes } from './audio/transcription/transcription-routes.ts';
import { TRANSCRIPTION_PARAMETERS } from './audio/transcription/transcription-schema.ts';
import {
  type QuotedSound,
  quotedSoundSchema,
  quotedTranscription,
} from './audio/transcription/transcription-to-call.ts';
import { EMBEDDINGS_WIRE } from './embeddings/embeddings-routes.ts';
import { MODERATIONS_WIRE } from './moderations/moderations-routes.ts';
import { type PassedWire, passedRoutes } from './passing/passed-route.ts';
import { RERANK_WIRE } from './rerank/rerank-routes.ts';
import type { ChatDeps } from './routes/chat-routes.ts';

interface KindRoutes {
  /** Register them under `/api/v1`. */
  readonly routes: (deps: ChatDeps) => FastifyPluginAsync;
  /** The request fields that have an effect at every provider, for the list of models. */
  readonly parameters: readonly string[];
  /** Turns a body into a call that a quote can be made for. Throws GatewayError. */
  readonly quoted: (body: unknown, context: AudioContext) => CallRequest;
}

function passed<B extends { readonly model: string }, R>(wire: PassedWire<B, R>): KindRoutes {
  const check = createCheck<B>(wire.schema);
  return {
    routes: (deps) => passedRoutes(deps, wire),
    parameters: wire.parameters,
    quoted(body, context) {
      const checked = check(withModel(body));
      wire.check(checked);
      return wire.toCall(checked, context).request;
    },
  };
}

const checkSpeech = createCheck<SpeechBody>(speechSchema);
const checkSound = createCheck<QuotedSound>(quotedSoundSchema);

export const KIND_ROUTES: Readonly<Record<ModelKind, KindRoutes>> = {
  embeddings: passed(EMBEDDINGS_WIRE),
  speech: {
    routes: speechRoutes,
    parameters: [...SPEECH_PARAMETERS, 'stream_format'],
    quoted: (body, context) => speechToCall(checkSpeech(withModel(body)), context).request,
  },
  transcription: {
    routes: transcriptionRoutes,
    parameters: TRANSCRIPTION_PARAMETERS,
    quoted(body, context) {
      const { seconds, ...sound } = checkSound(withModel(body));
      return quotedTranscription(sound, seconds, context);
    },
  },
  rerank: passed(RERANK_WIRE),
  moderation: passed(MODERATIONS_WIRE),
};

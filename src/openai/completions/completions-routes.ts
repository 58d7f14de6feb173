import type { FastifyPluginAsync } from 'fastify';
import { dialectOf, toHttpError } from '#wire';
import { PARSED_JSON, takeBytes } from '#gateway';
import { requireAdmission } from '#auth';
import type { ChatDeps } from '../chat-routes.ts';
import { withoutAlias } from '../translated/model-alias.ts';
import { addTranslatedRoute, type ChatWire } from '../translated/translated-route.ts';
import { createCompletionEncoder } from './completion-encoder.ts';
import { completionAnswerSchema, type CompletionsBody, completionsSchema } from './completions-schema.ts';
import { asksUsage } from '../request/chat-schema.ts';
import { toChatBody } from './to-chat-body.ts';

/** `POST /completions`, as clients of OpenAI's older API send it. Register it under `/api/v1`. */
export function completionsRoutes(deps: ChatDeps): FastifyPluginAsync {
  return async (app) => {
    const admissionOf = requireAdmission(app, deps.pipeline.admit, true);
    takeBytes(app, deps.config.limits.chatBodyBytesMax, PARSED_JSON);
    addTranslatedRoute(app, deps, admissionOf, COMPLETIONS);
  };
}

const COMPLETIONS: ChatWire<CompletionsBody> = {
  path: '/completions',
  schema: completionsSchema,
  noun: 'A completion',
  answerSchema: completionAnswerSchema,
  eventSchema: completionAnswerSchema,
  described: {
    summary: 'Create a completion',
    operationId: 'createCompletion',
    description:
      "OpenAI's older Completions API. The prompt is sent as a message of the user, and the call is routed and billed as a chat completion. " +
      'With `stream` the answer is `text/event-stream`: `data:` frames with `choices[].text`, the last of which carries `finish_reason` and `usage`, then `data: [DONE]`. ' +
      '`x-tollgate-dropped` names the fields that the provider did not get.',
  },
  nameOf: (field) => field,
  toError: (error, asked) => toHttpError(error, dialectOf(asked)),
  native: null,
  runsHere: () => false,
  translate(asked, { dialect, now, targets }) {
    const { body, dropped } = toChatBody({ ...asked, model: withoutAlias(asked.model, targets) });
    const created = Math.floor(now / 1000);
    return {
      body,
      dropped,
      encoder: (callId) =>
        createCompletionEncoder({
          id: `cmpl-${callId.replace(/^gen-/, '')}`,
          created,
          model: asked.model,
          dialect,
          asksUsage: asksUsage(body),
        }),
    };
  },
};

import type { FastifyPluginAsync } from 'fastify';
import { PARSED_JSON } from '#http';
import { takeBytes } from '#call';
import type { Counter } from '#limits';
import { requireAdmission } from '#auth';
import type { KeptResponses } from '#kept-responses';
import type { ChatDeps } from '../routes/chat-routes.ts';
import { addCountRoute } from '../translated/count-route.ts';
import { hostOfUrl, serviceAtAddress, isBridged, withoutAlias } from '../translated/service-names.ts';
import { NOTHING, type SealedCalls } from '../chat/reply/echo-fields.ts';
import type { SealedThinking } from '../chat/reply/sealed-thinking.ts';
import { addTranslatedRoute } from '../translated/translated-route.ts';
import type { ChatWire, Resolved } from '../translated/chat-wire.ts';
import type { Background } from './background/background.ts';
import { changedBody, type Conversations, createConversations } from './kept/conversations.ts';
import { refuseNeverKept, refuseUnkept } from './kept/errors.ts';
import { responseIdOf } from './kept/kept-ids.ts';
import { keepsResponse } from './kept/keep-responses.ts';
import { keptRoutes } from './kept-routes.ts';
import { responseBase } from './response-object.ts';
import { toResponseError } from './errors.ts';
import { createResponseEncoder } from './encode-reply.ts';
import { responseAnswerSchema, type ResponsesBody, responsesSchema } from './schema.ts';
import { ownPassthrough } from './passthrough.ts';
import { decodeRequest } from './decode-request.ts';
import { createToolRegistry, runsHere } from './tools.ts';

export interface ResponsesDeps extends ChatDeps {
  readonly thinking: SealedThinking;
  readonly calls: SealedCalls;
  /** null if the gateway keeps no responses. */
  readonly kept: KeptResponses | null;
  /** null if the gateway keeps no responses. */
  readonly background: Background | null;
  /** Open streams of accounts, also at other routes. */
  readonly listeners: Counter;
}

/** `/responses`, as clients of OpenAI's Responses API use it. Register it under `/api/v1`. */
export function responsesRoutes(deps: ResponsesDeps): FastifyPluginAsync {
  const { kept, config } = deps;
  const { messagesMax: itemsMax, chatBodyBytesMax: bytesMax } = config.limits;
  const conversations = createConversations({ kept, itemsMax, bytesMax });
  const wire = responsesWire(deps, conversations);
  return async (app) => {
    await app.register(keptRoutes({ ...deps, conversations }));
    takeBytes(app, bytesMax, PARSED_JSON);
    await app.register(async (paid) => {
      const admissionOf = requireAdmission(paid, deps.pipeline.admit, true);
      addTranslatedRoute(paid, deps, admissionOf, wire);
    });
    await app.register(async (free) =>
      addCountRoute(free, deps, {
        wire,
        path: '/responses/input_tokens',
        schema: wire.schema,
        named: 'input_tokens',
        more: { object: 'response.input_tokens' },
        described: {
          summary: 'Count the input tokens of a response',
          operationId: 'countResponseTokens',
          description: 'Approximate number of tokens in the input of a response',
        },
      }),
    );
  };
}

const SESSION_MAX = 256;
const NAMES: Readonly<Record<string, string>> = {
  max_completion_tokens: 'max_output_tokens',
  response_format: 'text',
  verbosity: 'text',
};

/** Members of a response that are not from the reply of the model. */
interface ResponseMembers {
  readonly isKept: boolean;
  /** The response that its conversation continues; null for none. */
  readonly previous: string | null;
  /** The client's own; providers do not get it. */
  readonly metadata?: ResponsesBody['metadata'];
  /** The response is made while its client does not wait. */
  readonly isInBackground: boolean;
}

function responsesWire(deps: ResponsesDeps, conversations: Conversations): ChatWire<ResponsesBody> {
  const { kept, background, now, config } = deps;
  const route = {
    path: '/responses',
    schema: responsesSchema(config.limits.messagesMax),
    noun: 'A response',
    answerSchema: responseAnswerSchema,
    streamType: 'text/event-stream',
    described: {
      summary: 'Create a response',
      operationId: 'createResponse',
      description:
        "OpenAI's Responses API for every model, agent and tool of the gateway. A provider that supports this API gets the request unchanged. For other providers the gateway translates the request to a chat completion, and translates the reply back. Routing and billing are always those of a chat completion. " +
        'With `stream` the answer is `text/event-stream` with the events of that API. A response is kept for later requests, unless the request says `store: false`. `x-tollgate-dropped` names the fields that the provider did not get.',
    },
    nameOf: (field: string) => NAMES[field] ?? field,
    toError: toResponseError,
  };
  return {
    ...route,
    ...wireFor(deps, { isKept: false, previous: null, isInBackground: false }),
    async resolve(asked, bytes, caller, memory) {
      refuseNeverKept(asked);
      const isInBackground = asked.background === true;
      if (isInBackground) refuseUnkept(asked, background !== null);
      const isKept = kept !== null && asked.store !== false && !caller.anonymous;
      const { previous_response_id: previousId, metadata } = asked;
      const previous = previousId ?? null;
      const wire = { ...route, ...wireFor(deps, { isKept, previous, metadata, isInBackground }) };
      const resolved = await conversations.resolve(asked, bytes, caller, memory);
      if (!isInBackground) {
        if (!isKept) return { ...resolved, wire };
        const keeps = keepsResponse(kept, { caller, asked });
        return {
          ...resolved,
          wire: { ...wire, translate: (...request) => ({ ...wire.translate(...request), keeps }) },
        };
      }
      const first = (callId: string) =>
        responseBase({
          id: responseIdOf(callId),
          createdAt: Math.floor(now() / 1000),
          asked,
          stored: true,
          previous,
          background: true,
        });
      const inBackground = background!.answers({ caller, asked, first });
      return {
        ...streamed(resolved),
        wire: { ...wire, translate: (...request) => ({ ...wire.translate(...request), background: inBackground }) },
      };
    },
  };
}

/** The provider of a response in the background streams it, so that what came until it is cancelled is known. */
function streamed({ asked, bytes }: Pick<Resolved<ResponsesBody>, 'asked' | 'bytes'>) {
  const { background: _background, ...rest } = asked;
  const text = changedBody(bytes.toString('utf8'), { stream: 'true', background: null });
  return { asked: { ...rest, stream: true }, bytes: Buffer.from(text) };
}

/** The parts of the wire that depend on one request. */
function wireFor(
  { config, thinking, calls, now: clock }: ResponsesDeps,
  { isKept, previous, metadata, isInBackground }: ResponseMembers,
): Pick<ChatWire<ResponsesBody>, 'native' | 'runsHere' | 'translate'> {
  const serviceAtHost = (host: string) => (url: string) => serviceAtAddress(url, [host, hostOfUrl(config.publicUrl)]);
  return {
    native: ownPassthrough(
      (callId) => ({
        ...(isKept ? { id: responseIdOf(callId), store: true } : {}),
        ...(previous === null ? {} : { previous_response_id: previous }),
        ...(isInBackground ? { background: true } : {}),
        ...(metadata === undefined || metadata === null ? {} : { metadata }),
      }),
      isKept,
    ),
    runsHere: (asked, { host }) => runsHere(asked, { serviceAt: serviceAtHost(host) }),
    translate(asked, { caller, headers, host, now, targets, isNative = false }) {
      const model = withoutAlias(asked.model, targets);
      const thinkingOf = { account: caller.account, model };
      const registry = createToolRegistry();
      const ids = calls(thinkingOf);
      const { summary, isReturned } = asksThinking(asked);
      const session = headers['session-id'];
      const { body, dropped } = decodeRequest(model === asked.model ? asked : { ...asked, model }, {
        registry,
        thought: (sealed) => thinking.open(thinkingOf, '', sealed),
        opened: ids.open,
        serviceAt: serviceAtHost(host),
        session: typeof session === 'string' && session !== '' && session.length <= SESSION_MAX ? session : null,
        bridged: isBridged(model) && !targets.model?.has(model),
        isNative,
      });
      return {
        body,
        dropped,
        // Thinking that the client does not return comes back with the calls.
        idOf: (id, call, message) => ids.seal(id, call, isReturned ? NOTHING : message),
        encoder: (callId) =>
          createResponseEncoder({
            id: responseIdOf(callId),
            createdAt: Math.floor(now / 1000),
            now: () => Math.floor(clock() / 1000),
            asked,
            stored: isKept,
            previous,
            background: isInBackground,
            registry,
            thinking: {
              isAsked: summary || isReturned,
              summary,
              seal: (members) => thinking.seal(thinkingOf, members),
              isIn: ids.holds,
            },
          }),
      };
    },
  };
}

/** `isReturned`: the client sends the encrypted thinking back. */
const asksThinking = ({ reasoning, include }: ResponsesBody) => ({
  summary: (reasoning?.['summary'] ?? null) !== null,
  isReturned: include?.includes('reasoning.encrypted_content') === true,
});

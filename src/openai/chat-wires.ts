import type { FastifyPluginAsync, FastifyRequest } from 'fastify';
import { anthropicForm } from './messages/errors.ts';
import { geminiForm } from './gemini/errors.ts';
import type { ChatWire } from './translated/chat-wire.ts';
import { CHAT_PATH, chatRoutes } from './routes/chat-routes.ts';
import { COMPLETIONS_PATH, completionsRoutes } from './completions/completions.ts';
import { GEMINI_PREFIX } from './gemini/address.ts';
import { type GeminiDeps, geminiRoutes } from './gemini/routes.ts';
import { messagesRoutes } from './messages/routes.ts';
import { type ResponsesDeps, responsesRoutes } from './responses/routes.ts';

interface ClientWire {
  readonly name: string;
  /** Path of its billed route below `prefix`. */
  readonly path: string;
  readonly prefix: '/api/v1' | '/api';
  /** Whose API it is and what its clients need, for `/llms.txt`: Markdown without a full stop at its end. */
  readonly clients: string;
  /** The form of its errors for a request outside of its routes; null if another client sent it. Absent: never. */
  readonly formOf?: (request: FastifyRequest) => ChatWire<never>['toError'] | null;
  readonly routes: (deps: ChatWireDeps) => FastifyPluginAsync;
}

export interface ChatWireDeps extends Omit<ResponsesDeps, 'catalog'>, Pick<GeminiDeps, 'catalog'> {}

/**
 * Every chat wire of the gateway. The composition mounts these and gives them to the reference. `test/peers/wires.ts`
 * says how each is called, and a test compares the two lists.
 */
export const CHAT_WIRES: readonly ClientWire[] = [
  {
    name: 'chat',
    path: CHAT_PATH,
    prefix: '/api/v1',
    clients: "OpenAI's Chat Completions API, which also calls tools and agents",
    routes: chatRoutes,
  },
  {
    name: 'completions',
    path: COMPLETIONS_PATH,
    prefix: '/api/v1',
    clients: "OpenAI's older Completions API",
    routes: completionsRoutes,
  },
  {
    name: 'messages',
    path: '/messages',
    prefix: '/api/v1',
    clients: "Anthropic's Messages API. Its clients, such as Claude Code, work unchanged: base URL `/api` of this host",
    formOf: anthropicForm,
    routes: messagesRoutes,
  },
  {
    name: 'responses',
    path: '/responses',
    prefix: '/api/v1',
    clients: "OpenAI's Responses API, for Codex and others. It can keep its responses for later requests",
    routes: responsesRoutes,
  },
  {
    name: 'gemini',
    path: `${GEMINI_PREFIX}/models/{model}:generateContent`,
    prefix: '/api',
    clients:
      "Google's Gemini API. Its clients, such as Gemini CLI and the SDK `@google/genai`, work unchanged: base URL `/api` of this host, key in `x-goog-api-key`",
    formOf: geminiForm,
    routes: geminiRoutes,
  },
];

/** The form of an error for a request that no wire has answered; null for that of chat. */
export function formOfErrors(request: FastifyRequest): ChatWire<never>['toError'] | null {
  for (const { formOf } of CHAT_WIRES) {
    const form = formOf?.(request) ?? null;
    if (form !== null) return form;
  }
  return null;
}

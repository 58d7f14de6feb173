import type { FastifyPluginAsync } from 'fastify';
import { MESSAGES_PATH, RESPONSES_PATH } from '#config';
import { CHAT_PATH, chatRoutes } from './chat/chat-routes.ts';
import { COMPLETIONS_PATH, completionsRoutes } from './completions/completions.ts';
import { type MessagesDeps, messagesRoutes } from './messages/messages-routes.ts';
import { type ResponsesDeps, responsesRoutes } from './responses/responses-routes.ts';

/** An API for chat models that clients speak. */
interface ClientWire {
  readonly name: string;
  /** Path of its billed route below `/api/v1`. */
  readonly path: string;
  /** Whose API it is and what its clients need, for `/llms.txt`: Markdown without a full stop at its end. */
  readonly clients: string;
  /** All its routes. They are registered under `/api/v1`. */
  readonly routes: (deps: ChatWireDeps) => FastifyPluginAsync;
}

/** The parts of the gateway that the wires need. Each takes those that it uses. */
interface ChatWireDeps extends MessagesDeps, ResponsesDeps {}

/**
 * Every chat wire of the gateway. The composition mounts these and gives them to the reference. `test/peers/wires.ts`
 * says how each is called, and a test compares the two lists.
 */
export const CHAT_WIRES: readonly ClientWire[] = [
  {
    name: 'chat',
    path: CHAT_PATH,
    clients: "OpenAI's Chat Completions API, which also calls tools and agents",
    routes: chatRoutes,
  },
  {
    name: 'completions',
    path: COMPLETIONS_PATH,
    clients: "OpenAI's older Completions API",
    routes: completionsRoutes,
  },
  {
    name: 'messages',
    path: MESSAGES_PATH,
    clients: "Anthropic's Messages API. Its clients, such as Claude Code, work unchanged: base URL `/api` of this host",
    routes: messagesRoutes,
  },
  {
    name: 'responses',
    path: RESPONSES_PATH,
    clients: "OpenAI's Responses API, for Codex and others. It can keep its responses for later requests",
    routes: responsesRoutes,
  },
];

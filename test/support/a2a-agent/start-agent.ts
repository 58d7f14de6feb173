import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AgentCard } from '@a2a-js/sdk';
import { createLegacyAwarePushNotificationSender } from '@a2a-js/sdk/compat/v0_3/server';
import { legacyRestRouter } from '@a2a-js/sdk/compat/v0_3/server/express';
import {
  DefaultRequestHandler,
  InMemoryPushNotificationStore,
  InMemoryTaskStore,
  type A2ARequestHandler,
} from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import express, { type Express } from 'express';
import { createCard, extendedCardOf, legacyCardJson } from './agent-card.ts';
import type { Agent, AgentOptions, ReceivedRequest } from './agent.ts';
import { createExecutor } from './executor.ts';
import { createLegacyWire } from './legacy-wire.ts';
import { listen } from './listening.ts';
import { answerOddly } from './odd-answers.ts';
import { createReceived, receive, replayOf, within } from './received.ts';

const CARD_PATH = '/.well-known/agent-card.json';

/**
 * Starts an agent in this process on a loopback port. The first word of a message decides what it does, see
 * `executor.ts`.
 */
export async function startAgent(options: AgentOptions = {}): Promise<Agent> {
  const { version = '1.0', bindings = ['JSONRPC', 'HTTP+JSON'] } = options;
  const executor = createExecutor();
  const received = createReceived();
  const server = await listen((incoming, response) => void answer(incoming, response), options.port);
  const card = createCard(server.url, options);
  const handler = createHandler(card, executor, options);
  const app = version === '0.3' ? createLegacyApp(handler, card) : createApp(handler, version === 'both');
  const legacyRpc = createLegacyWire(handler);

  async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = await receive(incoming).catch(() => null);
    if (!request) return;
    received.add(request);
    const forCard = request.path.startsWith('/.well-known/');
    if (!forCard && options.bearer !== undefined && request.headers.authorization !== `Bearer ${options.bearer}`) {
      return void response.writeHead(401, { 'www-authenticate': 'Bearer' }).end();
    }
    if (!forCard && !bindings.includes(bindingOf(request))) return void response.writeHead(404).end();
    if (answerOddly(request, response, version === '0.3' || (version === 'both' && request.version !== '1.0'))) return;
    if (version === '0.3' && bindingOf(request) === 'JSONRPC') return legacyRpc(request.body, response);
    // The SDK's 0.3 routes read this header. A real 0.3 agent doesn't know it, so it is removed.
    const { 'a2a-version': _, ...others } = incoming.headers;
    app(replayOf(incoming, request, version === '0.3' ? others : incoming.headers), response);
  }

  return {
    url: server.url,
    received: received.requests,
    get asked() {
      return received.asked;
    },
    receives: (fits) => received.first(fits),
    get waiting() {
      return executor.waiting;
    },
    waits() {
      const [first] = executor.waiting;
      if (first !== undefined) return Promise.resolve(first);
      return within<string>(
        'a task that waits',
        () => '',
        (resolve) => {
          executor.onWaiting(resolve);
          return () => {};
        },
      );
    },
    progress: (taskId, text) => executor.progress(taskId, text),
    finish: (taskId, state = 'completed') => executor.finish(taskId, state),
    close: () => server.close(),
  };
}

const bindingOf = ({ verb, path }: ReceivedRequest) =>
  verb === 'POST' && (path === '/' || path === '') ? 'JSONRPC' : 'HTTP+JSON';

function createHandler(
  card: AgentCard,
  executor: ReturnType<typeof createExecutor>,
  options: AgentOptions,
): A2ARequestHandler {
  const pushStore = new InMemoryPushNotificationStore();
  const extended =
    options.extendedCard === undefined || options.extendedCard === 'yes' ? async () => extendedCardOf(card) : undefined;
  return new DefaultRequestHandler(
    card,
    new InMemoryTaskStore(),
    executor,
    undefined,
    pushStore,
    createLegacyAwarePushNotificationSender(pushStore),
    extended,
    undefined,
    { validateInputModes: options.inputModes !== undefined },
  );
}

const userBuilder = UserBuilder.noAuthentication;

function createApp(requestHandler: A2ARequestHandler, both: boolean): Express {
  const app = express();
  const compat = both ? { legacyCompat: { enabled: true } } : {};
  app.use(CARD_PATH, agentCardHandler({ agentCardProvider: requestHandler, ...compat }));
  const rpc = jsonRpcHandler({ requestHandler, userBuilder, ...compat });
  // Called only for `POST /`. Mounted at `/`, it would also check the content type of REST requests.
  app.use((request, response, next) =>
    request.method === 'POST' && request.path === '/' ? rpc(request, response, next) : next(),
  );
  app.use(restHandler({ requestHandler, userBuilder, ...compat }));
  return app;
}

function createLegacyApp(requestHandler: A2ARequestHandler, card: AgentCard): Express {
  const app = express();
  // Agents of 0.3 served their card at one of these two paths.
  app.get([CARD_PATH, '/.well-known/agent.json'], (_request, response) => void response.json(legacyCardJson(card)));
  app.use(legacyRestRouter({ requestHandler, userBuilder }));
  return app;
}

import type { FastifyInstance, FastifyPluginAsync, FastifyRequest } from 'fastify';
import { createKeepAlive } from '#http';
import { createSeals, type SealSecret } from '#security';
import { formatUsd } from '#billing/amounts';
import type { Config } from '#config';
import { createStreamQuota, type StreamShares } from '#limits';
import type { Call, Idempotency, Pipeline } from '#call';
import { targetOf, type TargetAdapter, type TargetAdapters } from '#bridge';
import { type Catalog, namesToCompare } from '#catalog';
import type { Payments } from '#payments';
import type { RunTokens } from '#auth';
import { type Blobs, createKeptReplies } from '#files';
import type { EndTask, TaskPoll, Tasks } from '#tasks';
import { createAgentTarget } from './bridge/agent-target.ts';
import { runBridged, type Bridge } from './bridge/bridged.ts';
import { createAskForCard } from './cards/fetch-card.ts';
import { createCards, type BridgedAgent } from './cards/cards.ts';
import type { NetworkOf } from './cards/known-cards.ts';
import type { CardOrigin } from './cards/card-pages.ts';
import { addCardRoutes } from './cards/card-routes.ts';
import type { CardAuth } from './cards/write-card.ts';
import type { SignBytes } from './cards/sign-card.ts';
import { createHandler } from './http/handler.ts';
import { showExtendedCard } from './send/extended-card.ts';
import { createPaymentTasks } from './protocol/x402.ts';
import { createOpenStreams } from './protocol/open-streams.ts';
import type { Push } from './push/create-push.ts';
import { resolveAgent, unknownAgent } from './agent/resolve.ts';
import { a2aRoutes, type A2aRoutesDeps } from './http/routes.ts';
import { createRunSend } from './send/run-send.ts';
import { createHandleMessage } from './send/handle-message.ts';
import { createListenToTask } from './tasks/listen-to-task.ts';
import { createEndTask } from './tasks/end-task.ts';
import { createPoll, showTask, type RunTaskDeps } from './tasks/run-task.ts';
import type { SendAdapterDeps } from './send/sent-message.ts';
import { tellAgent } from './push/own-webhook.ts';

interface A2aOptions extends Pick<A2aRoutesDeps, 'onRefused'> {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run' | 'admit' | 'visitor' | 'lookUp'>;
  readonly catalog: Catalog;
  readonly tasks: Tasks;
  /** Stores large results, so that a repeat of their message gets them again. Default: large results are not kept. */
  readonly blobs?: Pick<Blobs, 'write' | 'find' | 'read'>;
  readonly idempotency: Idempotency;
  readonly payments: Payments;
  readonly runTokens: RunTokens;
  /** Counts the streams that each account listens to, over all protocols. */
  readonly listeners: StreamShares;
  readonly push: Push;
  readonly targets: () => Partial<TargetAdapters>;
  readonly config: Pick<Config, 'limits' | 'billing' | 'upstream' | 'tasks' | 'webhooks'>;
  /** The origin at which agents reach this gateway, without a trailing slash; null if it is not known. */
  readonly ownUrl: () => string | null;
  /** null: cards are not signed. */
  readonly sign: SignBytes | null;
  readonly auth: CardAuth;
  readonly challenge: A2aRoutesDeps['challenge'];
  /** The origin that the cards in a response name; null if no origin is known. */
  readonly origin: (request: FastifyRequest) => CardOrigin | null;
  /** Seals the ids of tasks that wait for a payment. */
  readonly secret: SealSecret;
  readonly version: string;
  readonly now: () => number;
  /** A monotonic clock in milliseconds: changes to the machine's clock do not affect it. */
  readonly elapsed: () => number;
  readonly random: () => number;
  readonly networkOf: NetworkOf;
  readonly onError: (
    error: unknown,
    request: { readonly id: string; readonly method: string; readonly url: string },
  ) => void;
  /** Called with the error when an agent's card cannot be fetched, or a task cannot be looked at. */
  readonly onUnseen: (error: unknown) => void;
  readonly keepAliveMs?: number;
}

export interface A2a {
  /** Register it at the root and under `/api/v1`. */
  readonly routes: FastifyPluginAsync;
  /** Adds the routes of agent cards, which need no credential. */
  addCards(app: FastifyInstance): void;
  readonly target: TargetAdapter;
  readonly poll: TaskPoll;
  readonly endTask: EndTask;
  /**
   * Prepares a stop of the gateway in `ms`. Shortly before it, the streams of running tasks get their last event and
   * end.
   */
  drain(ms: number): void;
}

const KEEP_ALIVE_MS = 15_000;
/** Time for streams to send their last event before the gateway stops. */
const LAST_EVENTS_MS = 1_000;
const NAMED_MAX = 1_000;
const SHOWN_MAX = 5;
/** Lifetime of the id of a task that waits for a payment. */
const UNPAID_MS = 60 * 60_000;

export function createA2a(options: A2aOptions): A2a {
  const { pipeline, catalog, tasks, config, push, runTokens, now, random, version } = options;
  const onError = (error: unknown) => options.onError(error, { id: '', method: 'POST', url: '/a2a' });
  const cards = createCards({
    fetchCard: createAskForCard(pipeline),
    sign: options.sign,
    auth: options.auth,
    x402: options.payments.open,
    version,
    now: options.elapsed,
    date: now,
    random,
    networkOf: options.networkOf,
    onError: (error) => options.onUnseen(error),
  });
  const taskTtlMs = config.tasks.ttlMs;
  const { replyBytesMax, imagesReplyBytesMax } = config.upstream;
  const filesBytesMax = Math.max(replyBytesMax, imagesReplyBytesMax);
  const streams = createOpenStreams();
  const places = createStreamQuota({ max: config.limits.listensMax, ofAccounts: options.listeners });
  const seen = { cards, notify: push.notify, streams, replyBytesMax, filesBytesMax };
  const sendAdapterDeps: SendAdapterDeps = {
    ...seen,
    tasks,
    places,
    runGift,
    ownWebhook: push.ownWebhook,
    taskTtlMs,
    onError,
  };
  const unpaid = createPaymentTasks({
    seals: createSeals({ secret: options.secret, ttlMs: UNPAID_MS, now }),
    now,
  });

  const isAgent = (name: string): boolean => catalog.knows(name, 'agent');
  /** The bridge of a name. null if no bridge has this name, or if an agent has it: agents come first. */
  const bridgeOf = (service: string): Bridge | null => {
    if (isAgent(service)) return null;
    const { a2a: _, ...others } = options.targets();
    const target = targetOf(others, service);
    return target?.target.has(target.name) ? { service, ...target } : null;
  };
  function* allNames(): Generator<string> {
    yield* namesToCompare(catalog.offers('agent'));
    const { a2a: _, ...others } = options.targets();
    for (const [kind, target] of Object.entries(others))
      for (const { name } of target.list(NAMED_MAX)) yield `${kind}/${name}`;
  }
  const bridged = async (service: string): Promise<BridgedAgent | null> => {
    const bridge = bridgeOf(service);
    const about = await bridge?.target.about?.(bridge.name);
    return bridge && about ? { ...about, primitive: bridge.target.primitive, name: bridge.name } : null;
  };
  const namesBelow = (prefix: string): readonly string[] =>
    [...allNames()].filter((name) => name.startsWith(prefix)).slice(0, SHOWN_MAX);
  const nameOf = (name: string): string => (bridgeOf(name) === null ? resolveAgent(catalog, name).service : name);

  const taskDeps: RunTaskDeps = {
    ...seen,
    pipeline,
    tasks,
    nameOf,
    listen: createListenToTask({ ...seen, pipeline, tasks, places }),
  };
  const handleMessage = createHandleMessage({
    paid: { idempotency: options.idempotency, payments: options.payments },
    tasks,
    unpaid,
    ...(options.blobs ? { largeReplies: createKeptReplies(options.blobs, config.upstream.imagesReplyBytesMax) } : {}),
    onError,
    show: (ask, taskId, reply) => showTask(taskDeps, ask, taskId, reply, new AbortController().signal),
  });
  const runSend = createRunSend({ ...sendAdapterDeps, pipeline, catalog, handleMessage, unpaid, push });
  const bridgedDeps = { pipeline, tasks, handleMessage, taskTtlMs, now };

  const handler = createHandler({
    catalog,
    tasks,
    taskDeps,
    runSend,
    push: (ask, reply) =>
      push.answer({ ...ask, service: nameOf(ask.service) }, reply, (task) =>
        tellAgent({ pipeline, catalog, cards, ownWebhook: push.ownWebhook }, task).catch(options.onUnseen),
      ),
    card: (ask, reply) => showExtendedCard({ pipeline, catalog, cards }, ask, reply),
    bridged(ask) {
      const bridge = bridgeOf(ask.service);
      if (bridge === null && !isAgent(ask.service)) throw unknownAgent(ask.service, allNames());
      return bridge === null ? null : (reply) => runBridged(bridgedDeps, bridge, ask, reply);
    },
  });

  return {
    routes: a2aRoutes({
      admit: pipeline.admit,
      handler,
      payments: options.payments,
      isService: (name) => isAgent(name) || bridgeOf(name) !== null,
      limits: config.limits,
      receipts: config.billing.receipts,
      allowPrivate: config.webhooks.allowPrivate,
      origin: options.origin,
      challenge: options.challenge,
      keepAlive: createKeepAlive(options.keepAliveMs ?? KEEP_ALIVE_MS),
      onError: options.onError,
      onRefused: options.onRefused,
    }),
    addCards: (app) =>
      addCardRoutes(app, { catalog, cards, origin: options.origin, visitor: pipeline.visitor, bridged, namesBelow }),
    target: createAgentTarget({ ...sendAdapterDeps, catalog }),
    poll: createPoll({ ...taskDeps, onError: options.onUnseen }),
    endTask: createEndTask({ ...taskDeps, notify: push.notify, onError: options.onUnseen }),
    drain: (ms) => void setTimeout(streams.end, ms - Math.min(LAST_EVENTS_MS, ms / 2)).unref(),
  };

  /** The run token for an agent that may make calls under this call; null if nothing is left to lend. */
  function runGift({ id, caller, lendable }: Call) {
    if (lendable === 0n) return null;
    const token = runTokens.issue(
      { parent: id, account: caller.account, key: caller.key?.hash ?? null },
      now() + taskTtlMs,
    );
    const own = options.ownUrl();
    return { token, url: own === null ? null : `${own}/api/v1`, budget: formatUsd(lendable) };
  }
}

import type { IncomingMessage } from 'node:http';
import type { FastifyPluginAsync } from 'fastify';
import { clientAddress } from '#security';
import type { Pipeline } from '#call';
import { createKeptResponses, type KeptResponses } from '#kept-responses';
import {
  addRealtime,
  addResponseSockets,
  type Background,
  CHAT_WIRES,
  ClientSockets,
  type ChatWireDeps,
  clientSecretRoutes,
  cohereRerankRoutes,
  createBackground,
  createModelTarget,
  createSealedCalls,
  createSealedThinking,
  KIND_ROUTES,
  type Realtime,
} from '#openai';
import { originGuardOf } from './addresses.ts';
import { type BatchParts, openBatches } from './batches.ts';
import type { Phases } from './calls.ts';
import { API, mount } from './mount.ts';
import type { RouteParts } from './route-parts.ts';

/** Models: chat in all its wires, what is translated to it, and what has routes of its own. */
export interface OpenaiParts {
  readonly wires: ChatWireDeps;
  readonly keptParts: KeptParts;
  readonly batches: BatchParts;
  readonly realtime: Realtime;
}

/** `toolsOf`: the tools of MCP that chats may name. */
export async function openOpenai(
  phases: Phases,
  parts: RouteParts,
  toolsOf: NonNullable<ChatWireDeps['toolLoop']>['toolsOf'],
): Promise<OpenaiParts> {
  const { foundation, access, calls } = phases;
  const { config, identity, now, onError } = foundation;
  const { http, payments } = access;
  const { catalog } = http;
  const keptParts = await openKept(phases);
  parts.targets.add({ model: createModelTarget({ catalog, config, now }) });
  const secret = identity.secrets('thinking of models');
  const wires: ChatWireDeps = {
    pipeline: calls.pipeline,
    idempotency: calls.idempotency,
    payments,
    config,
    catalog,
    targets: parts.targets.all,
    toolLoop: { catalog, runs: parts.runs, toolsOf, budgetMax: config.billing.runCostMax },
    blobs: parts.files.blobs,
    thinking: createSealedThinking(secret),
    calls: createSealedCalls(secret),
    keptResponses: keptParts.keptResponses,
    background: keptParts.background,
    listeners: parts.listeners,
    now,
    onError,
    ...parts.keepAlive,
  };
  const batches = await openBatches(phases, parts, (linePipeline) => routesOfLines(wires, linePipeline));
  return { wires, keptParts, batches, realtime: openRealtime(phases) };
}

export async function mountOpenai({ foundation, access, calls }: Phases, { wires }: OpenaiParts): Promise<void> {
  const { pipeline } = calls;
  const { http, clientSecrets } = access;
  const { server, catalog } = http;
  await mount(server, chatWiresAt(API.prefix, wires), API);
  const routes = {
    ...Object.fromEntries(Object.entries(KIND_ROUTES).map(([kind, { routes }]) => [kind, routes(wires)])),
    clientSecrets: clientSecretRoutes({ pipeline, catalog, clientSecrets, now: foundation.now }),
  };
  await mount(server, routes, API);
}

/** Batches, and the wires whose clients have another base address. */
export async function mountBatches({ access }: Phases, { wires, batches }: OpenaiParts): Promise<void> {
  const { server } = access.http;
  await mount(server, batches.routes, API);
  await mount(server, chatWiresAt('/api', wires), { prefix: '/api' });
  await mount(server, { rerank: cohereRerankRoutes(wires) }, { prefix: '/api/v2' });
}

type Routes = Readonly<Record<string, FastifyPluginAsync>>;

const chatWiresAt = (prefix: string, deps: ChatWireDeps): Routes =>
  Object.fromEntries(CHAT_WIRES.filter((wire) => wire.prefix === prefix).map((wire) => [wire.name, wire.routes(deps)]));

/** The routes that lines of batches can name. */
const WIRES_OF_LINES: ReadonlySet<string> = new Set(['chat', 'completions', 'responses']);

/** Lines of batches call models alone: no tools that the gateway calls, and nothing that is kept for later requests. */
function routesOfLines({ toolLoop: _tools, ...wires }: ChatWireDeps, pipeline: Pipeline): Routes {
  const deps: ChatWireDeps = { ...wires, pipeline, targets: () => ({}), keptResponses: null, background: null };
  const chat: Routes = Object.fromEntries(
    CHAT_WIRES.filter(({ name }) => WIRES_OF_LINES.has(name)).map((wire) => [wire.name, wire.routes(deps)]),
  );
  return { ...chat, embeddings: KIND_ROUTES.embeddings.routes(deps) };
}

interface KeptParts {
  /** Removes old ones, also if no new ones are kept. */
  readonly responseStore: KeptResponses;
  readonly keptResponses: KeptResponses | null;
  readonly background: Background | null;
}

async function openKept({ foundation, money, calls }: Phases): Promise<KeptParts> {
  const { config, database, identity, resources, outages, now } = foundation;
  const secret = identity.secrets('kept responses');
  const responseStore = createKeptResponses({
    database,
    limits: config.responses,
    longestLockMs: calls.longestLockMs,
    secret,
    now,
  });
  const background = createBackground({
    keptResponses: responseStore,
    giveBack: money.giveBack,
    onError: (error) =>
      outages.failed(
        'background',
        { err: error },
        'a response in the background could not be stored; it is tried again',
      ),
  });
  // No other process can have the embedded database open, so every response that is under way died with its process.
  if (database.engine === 'sqlite') await background.endOrphans();
  if (config.responses.keepMs === 0) return { responseStore, keptResponses: null, background: null };
  // After the tools that it may call were opened, so it is closed before them.
  resources.defer(() => background.close());
  return { responseStore, keptResponses: responseStore, background };
}

function openRealtime({ foundation, observers, access, network, calls }: Phases): Realtime {
  const { config, onError, now } = foundation;
  const { http, clientSecrets } = access;
  const { server } = http;
  const onRefused = observers.refusals.note;
  const sockets = new ClientSockets(server, { limits: config.limits, guard: originGuardOf(config), onRefused });
  const common = {
    pipeline: calls.pipeline,
    config,
    addressOf: ({ socket, headers }: IncomingMessage) =>
      clientAddress(socket.remoteAddress ?? '', headers['x-forwarded-for'], http.trust),
  };
  const errorAt = (url: string) => (error: unknown) => onError(error, { id: '', method: 'GET', url });
  const all = [
    addRealtime(server, sockets, {
      ...common,
      clientSecrets,
      dial: network.dial,
      onError: errorAt('/api/v1/realtime'),
      onRefused,
    }),
    addResponseSockets(server, sockets, { ...common, now, onError: errorAt('/api/v1/responses') }),
  ];
  return {
    drain: () => all.forEach((sessions) => sessions.drain()),
    close: () => all.forEach((sessions) => sessions.close()),
  };
}

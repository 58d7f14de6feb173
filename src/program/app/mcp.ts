import type { FastifyInstance } from 'fastify';
import { createToolPins } from '#catalog';
import { createMcp, createSessionStore, type Mcp } from '#mcp';
import { networkOfProvider } from '#network';
import { VERSION } from '../../foundation/version.ts';
import { originGuardOf } from './addresses.ts';
import type { Phases } from './calls.ts';
import { API, mount } from './mount.ts';
import type { RouteParts } from './route-parts.ts';

/** Most elements of a list that a line of the log names. */
const LEFT_OUT_LOGGED = 5;

/** Tools: the routes of MCP, whose tools chats and agents can call too. */
export function openMcp({ foundation, observers, money, access, network, calls }: Phases, parts: RouteParts): Mcp {
  const { config, database, identity, logger, resources, now, elapsed, random, onError } = foundation;
  const { http, oauth, payments } = access;
  const mcp = createMcp({
    pipeline: calls.pipeline,
    catalog: http.catalog,
    sessions: createSessionStore(database, { now }),
    pins: createToolPins(database, { now }),
    tasks: parts.work.tasks,
    blobs: parts.files.blobs,
    receiptOf: money.pastReceipts.ofCall,
    present: network.registry.isPresent,
    networkOf: networkOfProvider(network.registry, network.tunnels),
    isStranger: network.tunnels.isStranger,
    random,
    onUnlisted: (error, { service, provider }) =>
      logger.debug({ err: error, service, provider: provider.name }, 'the tools of a service could not be listed'),
    onLeftOut: (leftOut, { service, provider }) =>
      logger.warn(
        { service, provider: provider.name, left_out: leftOut.length, first: leftOut.slice(0, LEFT_OUT_LOGGED) },
        leftOut.length === 0
          ? 'clients can read all lists of a service again'
          : 'parts of the lists of a service cannot be read by clients and are not listed',
      ),
    onShared: (name, first, later) =>
      logger.warn({ name, service: first, later }, 'two services have the same name at /mcp: the older one keeps it'),
    onUnseen: (error) => logger.debug({ err: error }, 'a task of a tool could not be checked'),
    idempotency: calls.idempotency,
    payments,
    config,
    targets: parts.targets.all,
    listeners: parts.listeners,
    secret: identity.accepted('mcp state'),
    version: VERSION,
    now,
    elapsed,
    onError,
    guard: originGuardOf(config),
    challenge: oauth.challengeFor,
    strangers: config.oauth.issuer === null && !config.authorization.enabled,
    onRefused: observers.refusals.note,
    onSessionEnded: observers.metrics.mcpSessionEnded,
    ...parts.keepAlive,
  });
  resources.defer(() => mcp.close());
  observers.metrics.show({ mcp: mcp.counts });
  observers.observer.readOperations(mcp.hasTool);
  parts.targets.add({ mcp: mcp.target });
  return mcp;
}

export async function mountMcp(server: FastifyInstance, { routes }: Mcp): Promise<void> {
  await mount(server, { mcp: routes });
  await mount(server, { mcp: routes }, API);
}

import { type A2a, createA2a, createCardOrigin, createPush, type PushNotifications } from '#a2a';
import { type CardKey, createCardKey, OWN_SCOPE } from '#auth';
import type { Config } from '#config';
import { networkOfProvider } from '#network';
import type { TaskPoll } from '#tasks';
import { VERSION } from '../../foundation/version.ts';
import { listeningOrigin, ownUrlOf } from './addresses.ts';
import type { Phases } from './calls.ts';
import { API, mount } from './mount.ts';
import type { RouteParts } from './route-parts.ts';

/** Agents: the routes of A2A, and the key that signs the cards of agents. */
export interface A2aParts {
  readonly a2a: A2a;
  readonly cardKey: CardKey;
}

export async function openA2a(phases: Phases, parts: RouteParts): Promise<A2aParts> {
  const { foundation, access, network, calls } = phases;
  const { config, identity, logger, now, elapsed, random, onError } = foundation;
  const { http, oauth, runTokens, payments } = access;
  const { server, catalog } = http;
  const cardKey = createCardKey(identity);
  const push = openPush(phases, parts, (task, signal, whole) => a2a.poll(task, signal, whole));
  const a2a: A2a = createA2a({
    pipeline: calls.pipeline,
    catalog,
    tasks: parts.work.tasks,
    blobs: parts.files.blobs,
    idempotency: calls.idempotency,
    payments,
    runTokens,
    listeners: parts.listeners,
    push,
    targets: parts.targets.all,
    config,
    ownUrl: () => ownUrlOf(config, server),
    sign: { ...cardKey, jku: null },
    auth: cardAuth(config),
    challenge: oauth.challengeFor,
    origin: createCardOrigin({
      publicUrl: config.publicUrl,
      ownOrigin: http.ownOrigin,
      listening: () => listeningOrigin(config, server),
      domains: [...config.signIn.domains, ...config.allowedHosts],
    }),
    secret: identity.accepted('unpaid tasks'),
    version: VERSION,
    now,
    elapsed,
    random,
    networkOf: networkOfProvider(network.registry, network.tunnels),
    onError,
    onRefused: phases.observers.refusals.note,
    onUnseen: (error) => logger.debug({ err: error }, 'the card of an agent could not be read'),
    ...parts.keepAlive,
  });
  parts.targets.add({ a2a: a2a.target });
  a2a.addCards(server);
  await mount(server, { push: push.routes, a2a: a2a.routes });
  await mount(server, { a2a: a2a.routes }, API);
  return { a2a, cardKey };
}

/** Push notifications of tasks. `poll` asks an agent, whose protocol is made with them. */
function openPush({ foundation, access }: Phases, { work }: RouteParts, poll: TaskPoll): PushNotifications {
  const { config, identity, outages, now } = foundation;
  return createPush({
    webhooks: work.webhooks,
    tasks: work.tasks,
    catalog: access.http.catalog,
    allowPrivate: config.webhooks.allowPrivate,
    publicUrl: config.publicUrl,
    poll,
    secret: identity.accepted('webhooks'),
    limits: config.limits,
    now,
    onError: (error) =>
      outages.failed('webhooks', { err: error }, 'webhooks could not be delivered; they are tried again'),
  });
}

/** The issuer that cards name: the gateway itself, if its address is configured, or the operator's. */
const cardAuth = ({ authorization, publicUrl, oauth }: Config) =>
  authorization.enabled && publicUrl !== null
    ? { openIdConnectUrl: discoveryOf(publicUrl), scopes: [OWN_SCOPE] }
    : { openIdConnectUrl: discoveryOf(oauth.issuer), scopes: oauth.scopes };

/** The address of an issuer's metadata (OpenID Connect Discovery 1.0 section 4). */
const discoveryOf = (issuer: string | null): string | null =>
  issuer === null ? null : `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;

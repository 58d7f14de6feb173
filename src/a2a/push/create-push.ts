import type { FastifyPluginAsync } from 'fastify';
import type { JsonLimits } from '#wire';
import type { Catalog } from '#gateway';
import type { Poll, TaskKey, Tasks, Webhooks } from '#tasks';
import { taskMoney } from '../http/metadata.ts';
import type { Push } from './push.ts';
import { beganBy } from '../tasks/agent-tasks.ts';
import { createOwnAddresses } from './own-address.ts';
import { createPushConfigs } from './push-configs.ts';
import { createPushRelay } from './push-relay.ts';
import { pushRoutes } from './push-routes.ts';
import { createPushedEvents } from './pushed-events.ts';

interface CreatePushOptions {
  readonly webhooks: Webhooks;
  readonly tasks: Pick<Tasks, 'find' | 'saw' | 'costOf'>;
  readonly catalog: Pick<Catalog, 'offers'>;
  /** Allows webhooks of clients on this machine and its networks, and without TLS. */
  readonly allowPrivate: boolean;
  readonly publicUrl: string | null;
  /** Asks an agent for the state of a task. */
  readonly poll: Poll;
  /** 32 bytes, shared by all gateways of one database. */
  readonly secret: Uint8Array;
  readonly limits: JsonLimits;
  readonly now: () => number;
  readonly onError: (error: unknown) => void;
}

/**
 * Push notifications: the configurations of clients, the notifications to clients, and the gateway's own webhook for
 * agents.
 */
export interface PushNotifications extends Push {
  /** The gateway's own webhook. Register it at the root. */
  readonly routes: FastifyPluginAsync;
}

export function createPush({
  webhooks,
  tasks,
  catalog,
  allowPrivate,
  limits,
  poll,
  onError,
  ...own
}: CreatePushOptions): PushNotifications {
  const addresses = createOwnAddresses(own);
  const generationOf = async (key: TaskKey, ended: boolean) => {
    let began: string | null = null;
    const cost = await tasks.costOf(key, (task) => (began = beganBy(task)));
    return taskMoney(began, ended ? cost : null).generation;
  };
  const notify = createPushRelay({ webhooks, generationOf, onError });
  const offer = (id: string) => catalog.offers('agent').find((one) => one.id === id) ?? null;
  return {
    ...createPushConfigs({ webhooks, tasks, allowPrivate }),
    notify,
    ownWebhook: ({ id, service }, { account, within }, taskId) =>
      addresses.urlFor({ offerId: id, service, taskId, account, within }),
    routes: pushRoutes({ addresses, limits, onEvent: createPushedEvents({ tasks, offer, poll, notify }) }),
  };
}

import type { FastifyPluginAsync } from 'fastify';
import type { Offer, Catalog } from '#catalog';
import type { SealSecret } from '#security';
import type { TaskKey, TaskOwner, TaskPoll, Tasks } from '#tasks';
import type { Webhooks } from '#webhooks';
import type { JsonLimits } from '#wire';
import type { Link } from '../agent/resolve.ts';
import { taskMoney } from '../protocol/metadata.ts';
import { beganBy } from '../protocol/agent-tasks.ts';
import { createOwnAddresses, ownWebhookRoutes } from './own-webhook.ts';
import { createPushConfigs, type PushConfigs } from './push-configs.ts';
import { createPushRelay } from '../protocol/notifications.ts';

export interface Push extends PushConfigs {
  /**
   * The webhook for an agent's notifications of a task, or (`taskId` null) of the task that a message begins; null if
   * the gateway does not know its own address.
   */
  ownWebhook(offer: Offer, owner: TaskOwner, taskId: string | null): string | null;
  /** Notifies the webhooks of a task of an event in the version of the link. Returns at once. */
  notify(key: TaskKey, link: Pick<Link, 'version'>, value: unknown): void;
}

interface CreatePushOptions {
  readonly webhooks: Webhooks;
  readonly tasks: Pick<Tasks, 'find' | 'saw' | 'costOf'>;
  readonly catalog: Pick<Catalog, 'offers'>;
  /** Allows webhooks of clients on this machine and its networks, and without TLS. */
  readonly allowPrivate: boolean;
  readonly publicUrl: string | null;
  readonly poll: TaskPoll;
  /** 32 bytes, shared by all gateways of one database. */
  readonly secret: SealSecret;
  readonly limits: JsonLimits;
  readonly now: () => number;
  readonly onError: (error: unknown) => void;
}

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
    routes: ownWebhookRoutes({ addresses, limits, tasks, offer, poll, notify }),
  };
}

import { createSettlePendingCall } from '#billing/compose';
import { createOffersById, type Offer } from '#catalog';
import { createGuardedFetch } from '#network';
import { type BudgetNotices, createBudgetNotices, createWebhooks, type Webhooks } from '#webhooks';
import { createTasks, createTaskWatch, type KeptTasks, type TaskSink, type TaskWatchOptions } from '#tasks';
import { createTaskLog } from '#observe';
import type { Phases } from './calls.ts';

/** Work that outlives its call, and the webhooks that report it. */
export interface Work {
  readonly tasks: KeptTasks;
  readonly webhooks: Webhooks;
  /** Tells accounts and the operator of budgets that are nearly spent. */
  readonly notices: BudgetNotices;
  /** The offer with this id, also for a task whose call has ended. undefined if it does not exist any more. */
  readonly offerOf: (id: string) => Offer | undefined;
}

/** `gaveUp`: tells who waits for the end of a task that was given up. */
export function openWork(
  { foundation, observers, money, access, network }: Phases,
  gaveUp: NonNullable<TaskSink['tellGivenUp']>,
): Work {
  const { config, identity, database, logger, outages, resources, now, random } = foundation;
  const { ledger, prices, pastReceipts } = money;
  const offerOf = createOffersById(access.http.catalog);
  const tasks = createTasks({
    database,
    ledger,
    liveMax: config.tasks.liveMax,
    settlePendingCall: createSettlePendingCall({ ledger, prices, feeBps: config.billing.feeBps }),
    now,
    sinks: [createTaskLog(logger), observers.metrics.tasks, { tellGivenUp: gaveUp }],
    receipt: pastReceipts.ofRecord,
    offerOf,
    health: network.routing.health,
  });
  const { allowPrivate } = config.webhooks;
  const onError = (error: unknown) =>
    outages.failed('webhooks', { err: error }, 'webhooks could not be delivered; they are tried again');
  const webhooks = createWebhooks({
    database,
    fetch: createGuardedFetch({ allowPrivate }),
    secret: identity.secrets('webhooks'),
    now,
    random,
    onError,
    onLost: (lost) => logger.info({ ...lost }, 'a webhook was given up'),
  });
  resources.defer(() => webhooks.close());
  const notices = createBudgetNotices({
    database,
    fetch: createGuardedFetch({ allowPrivate }),
    secret: identity.secrets('account webhooks'),
    now,
    onNotice: ({ event: _event, time: _time, ...facts }, isOperators) => {
      const { of: subject, account, percent } = facts;
      // Only a budget of the operator is an alert. A customer's own budget is the customer's concern, and many can be
      // reached at once.
      logger.warn(
        { ...(isOperators ? { alert: true } : {}), ...facts },
        `a budget is spent to ${percent} %: ${subject} of ${account}`,
      );
    },
    onLost: (lost) => logger.info({ ...lost }, 'the webhook of an account was given up'),
    onError: (error) => outages.failed('budgets', { err: error }, 'budgets could not be checked; it is tried again'),
  });
  resources.defer(() => notices.close());
  return { tasks, webhooks, notices, offerOf };
}

/** Polls the live tasks, so that their ends are noticed even if no client asks. */
export function watchTasks(
  { foundation, network }: Phases,
  { tasks, offerOf }: Work,
  polls: TaskWatchOptions['polls'],
  pollsAtExpiry: TaskWatchOptions['pollsAtExpiry'],
): void {
  const { config, database, outages, resources, now, random } = foundation;
  const watch = createTaskWatch({
    database,
    tasks,
    polls,
    pollsAtExpiry,
    present: ({ offerId }) => {
      const offer = offerOf(offerId);
      return offer !== undefined && network.registry.isPresent(offer);
    },
    providerOf: ({ offerId }) => offerOf(offerId)?.provider.id ?? offerId,
    now,
    random,
    lookMsMax: config.tasks.lookMsMax,
    retentionMs: config.tasks.retentionMs,
    alone: database.engine === 'sqlite',
    onError: (error) => outages.failed('tasks', { err: error }, 'running tasks cannot be checked; it is tried again'),
  });
  resources.defer(() => watch.close());
}

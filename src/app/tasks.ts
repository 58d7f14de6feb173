import { createSettlePendingCall } from '#billing';
import { createOffersById } from '#gateway';
import { createGuardedFetch } from '#network';
import {
  createBudgetNotices,
  createTasks,
  createTaskWatch,
  createWebhooks,
  type TaskSink,
  type TaskWatchOptions,
} from '#tasks';
import { createTaskLog } from '#observe';
import { createPush } from '#a2a';
import type { Middle } from './middle.ts';

/** Tasks that outlive their calls, and the webhooks that report them. */
export function openTasks(middle: Middle) {
  const { config, identity, database, ledger, catalog, logger, outages, metrics, opened, late, now, random } = middle;
  const offerOf = createOffersById(catalog);
  const sinks: readonly TaskSink[] = [createTaskLog(logger), metrics.tasks];
  const tasks = createTasks({
    database,
    ledger,
    liveMax: config.tasks.liveMax,
    settlePendingCall: createSettlePendingCall({ ledger, prices: middle.prices, feeBps: config.billing.feeBps }),
    now,
    onBegun: (task) => sinks.forEach((sink) => sink.begun?.(task)),
    onEnded: (task, gaveUp) => sinks.forEach((sink) => sink.ended?.(task, gaveUp)),
    tellGivenUp: async (task) => {
      if (task.primitive === 'video') await late.gaveUpVideo(task);
    },
    onConcluded(call) {
      for (const sink of sinks) sink.concluded?.(call);
      const offer = offerOf(call.task.offerId);
      if (offer) for (const flag of call.flags) middle.health.flagged(offer, flag);
    },
    receipt: middle.pastReceipts.ofRecord,
    providerName: (offerId) => offerOf(offerId)?.provider.name ?? null,
  });
  const secret = identity.secret('webhooks');
  const { allowPrivate } = config.webhooks;
  const onError = (error: unknown) =>
    outages.failed('webhooks', { err: error }, 'webhooks could not be delivered; they are tried again');
  const webhooks = createWebhooks({
    database,
    fetch: createGuardedFetch({ allowPrivate }),
    secret,
    now,
    random,
    onError,
    onLost: (lost) => logger.info({ ...lost }, 'a webhook was given up'),
  });
  opened.defer(() => webhooks.close());
  const notices = createBudgetNotices({
    database,
    fetch: createGuardedFetch({ allowPrivate }),
    secret: identity.secret('account webhooks'),
    now,
    onNotice: ({ event: _event, time: _time, ...facts }, isOperators) => {
      const { of, account, percent } = facts;
      // Only a budget of the operator is an alert. A customer's own budget is the customer's concern, and many can be
      // reached at once.
      logger.warn(
        { ...(isOperators ? { alert: true } : {}), ...facts },
        `a budget is spent to ${percent} %: ${of} of ${account}`,
      );
    },
    onLost: (lost) => logger.info({ ...lost }, 'the webhook of an account was given up'),
    onError: (error) => outages.failed('budgets', { err: error }, 'budgets could not be checked; it is tried again'),
  });
  opened.defer(() => notices.close());
  const push = createPush({
    webhooks,
    tasks,
    catalog,
    allowPrivate,
    publicUrl: config.publicUrl,
    poll: (task, signal, whole) => late.pollAgent(task, signal, whole),
    secret,
    limits: config.limits,
    now,
    onError,
  });
  return { tasks, push, webhooks, notices, offerOf };
}

/** Polls the live tasks, so that their ends are noticed even if no client asks. */
export function watchTasks(
  { config, database, outages, opened, present, now, random }: Middle,
  { tasks, offerOf }: Pick<ReturnType<typeof openTasks>, 'tasks' | 'offerOf'>,
  { polls, pollsAtExpiry }: Pick<TaskWatchOptions, 'polls' | 'pollsAtExpiry'>,
): void {
  const watch = createTaskWatch({
    database,
    tasks,
    polls,
    pollsAtExpiry,
    present: ({ offerId }) => {
      const offer = offerOf(offerId);
      return offer !== undefined && present(offer);
    },
    providerOf: ({ offerId }) => offerOf(offerId)?.provider.id ?? offerId,
    now,
    random,
    lookMsMax: config.tasks.lookMsMax,
    retentionMs: config.tasks.retentionMs,
    alone: database.engine === 'sqlite',
    onError: (error) => outages.failed('tasks', { err: error }, 'running tasks cannot be checked; it is tried again'),
  });
  opened.defer(() => watch.close());
}

import type { FastifyPluginAsync } from 'fastify';
import { createServer } from '#http';
import { refuseStopped } from '#accounts';
import type { Pipeline, Runs } from '#call';
import { mostOf, releaseProbes } from '#call/compose';
import {
  createBatches,
  createBatchMoney,
  createBatchRunner,
  createFiles,
  createSealedContent,
  linePlaces,
  type BatchRunner,
  ProviderQueues,
} from '#batch-jobs';
import { createOffersById } from '#catalog';
import { batchRoutes, createBatchCallbacks, createLineCalls, createProviderBatchApi, fileRoutes } from '#openai';
import { createHeldCalls } from './held-calls.ts';
import type { Webhooks } from '#webhooks';
import type { Middle } from './middle.ts';
import { mount } from './mount.ts';

interface LineRoutesOptions {
  readonly webhooks: Webhooks;
  readonly runs: Runs;
  /** The routes that answer the requests of lines, with this pipeline in place of the usual one. */
  readonly lineRoutes: (pipeline: Pipeline) => Readonly<Record<string, FastifyPluginAsync>>;
}

/** Batches and their files: the routes, the rows, and the work of this gateway on batches. */
export async function openBatches(middle: Middle, { webhooks, runs, lineRoutes }: LineRoutesOptions) {
  const { config, database, identity, ledger, pipeline, health, authenticator, states, drain, outages, opened } =
    middle;
  const { now, random, onError } = middle;
  const alone = database.engine === 'sqlite';
  const content = createSealedContent(identity.secret('batches'));
  const files = createFiles({ database, content, limits: config.batches, now });
  const { allowPrivate } = config.webhooks;
  const callbacks = createBatchCallbacks({ webhooks, secret: identity.secret('callbacks of batches'), allowPrivate });
  let runner: BatchRunner | null = null;
  const batches = createBatches({
    database,
    content,
    liveMax: config.batches.liveMax,
    keepMs: config.batches.keepMs,
    now,
    onCreated: () => runner?.wake(),
    onCancelled: (id, ended) => runner?.cancelled(id, ended),
  });
  // It never listens, so only lines reach these routes.
  const server = createServer({ limits: config.limits, onError });
  opened.defer(() => server.close());
  const callerOf = async ({ account, apiKey: key }: { readonly account: string; readonly apiKey: string | null }) => {
    // The money of a batch is locked, but what it calls is new.
    const stopped = await refuseStopped(states, account);
    if (stopped !== null) throw stopped;
    return authenticator.ofStored({ account, key });
  };
  const lines = createLineCalls({
    pipeline,
    callerOf,
    mostOf(call) {
      releaseProbes(health, call);
      return mostOf(call);
    },
    held: createHeldCalls(middle),
    inject: (request) => server.inject(request),
  });
  await mount(server, lineRoutes(lines.pipeline), { prefix: '/api/v1' });
  const start = () => {
    const provider = createProviderBatchApi({ upstream: middle.upstream, offerOf: createOffersById(middle.catalog) });
    runner = createBatchRunner({
      database,
      files,
      content,
      money: createBatchMoney({ ledger, runs, now, alone }),
      calls: lines.calls,
      provider,
      queues: new ProviderQueues({ database, provider, bytesMax: config.batches.providerBytesMax, now }),
      lookMs: config.batches.providerLookMs,
      linesAtOnce: config.batches.linesAtOnce,
      places: linePlaces(config.batches),
      limits: {
        ...config.limits,
        linesMax: config.batches.linesMax,
        lineBytesMax: config.limits.chatBodyBytesMax,
        replyBytesMax: config.upstream.replyBytesMax,
        resultBytesMax: config.batches.accountBytesMax,
      },
      callerOf,
      tell: callbacks.tell,
      now,
      random,
      alone,
      isStopping: drain.announced,
      onError: (error) => outages.failed('batches', { err: error }, 'a batch could not go on; it is tried again'),
    });
    opened.defer(() => runner!.close());
  };
  return {
    files,
    batches,
    start,
    routes: {
      files: fileRoutes({ pipeline, files, config }),
      batches: batchRoutes({ pipeline, files, batches, callbacks, config }),
    },
  };
}

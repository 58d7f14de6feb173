import type { FastifyPluginAsync } from 'fastify';
import { createServer } from '#http';
import type { Caller } from '#accounts';
import type { Pipeline } from '#call';
import {
  type Batch,
  type BatchRunner,
  type Batches,
  createBatches,
  createBatchMoney,
  createBatchRunner,
  createFiles,
  createSealedContent,
  linePlaces,
  ProviderQueues,
  type StoredFiles,
} from '#batch-jobs';
import { batchRoutes, createBatchCallbacks, createLineCalls, createProviderBatchApi, fileRoutes } from '#openai';
import type { Phases } from './calls.ts';
import { API, mount } from './mount.ts';
import type { RouteParts } from './route-parts.ts';

export interface BatchParts {
  readonly files: StoredFiles;
  readonly batches: Batches;
  readonly start: () => void;
  readonly routes: Readonly<Record<'files' | 'batches', FastifyPluginAsync>>;
}

/**
 * Batches and their files: the routes, the rows, and the work of this gateway on batches. `lineRoutes`: the routes that
 * answer the requests of lines, with this pipeline in place of the usual one.
 */
export async function openBatches(
  { foundation, money, access, network, calls }: Phases,
  { work, runs }: RouteParts,
  lineRoutes: (pipeline: Pipeline) => Readonly<Record<string, FastifyPluginAsync>>,
): Promise<BatchParts> {
  const { config, database, identity, outages, resources, now, random, onError } = foundation;
  const { authenticator, drain } = access;
  const { webhooks } = work;
  const alone = database.engine === 'sqlite';
  const content = createSealedContent(identity.secrets('batches'));
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
  resources.defer(() => server.close());
  const callerOf = async (batch: Batch): Promise<Caller> => {
    const caller = await authenticator.ofStored(batch);
    // Those of the key are fixed.
    return batch.tags === null ? caller : { ...caller, tags: { ...batch.tags, ...caller.tags } };
  };
  const lines = createLineCalls({
    pipeline: calls.pipeline,
    callerOf,
    held: calls.held,
    inject: (request) => server.inject(request),
  });
  await mount(server, lineRoutes(lines.pipeline), API);
  const start = () => {
    const provider = createProviderBatchApi({ upstream: network.upstream, offerOf: work.offerOf });
    runner = createBatchRunner({
      database,
      files,
      content,
      money: createBatchMoney({ ...money, runs, now, alone }),
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
    resources.defer(() => runner!.close());
  };
  return {
    files,
    batches,
    start,
    routes: {
      files: fileRoutes({ pipeline: calls.pipeline, files, config }),
      batches: batchRoutes({ pipeline: calls.pipeline, files, batches, callbacks, config }),
    },
  };
}

import { onTestFinished } from 'vitest';
import type { LimitsConfig } from '#config';
import { createServer } from '#http';
import type { Caller } from '#accounts';
import type { Catalog } from '#catalog';
import { createGuardedFetch } from '#network';
import { createWebhooks } from '#webhooks';
import type { LostDelivery } from '../../../src/gateway/webhooks/webhook.ts';
import type { A2aRequest } from '../../../src/a2a/protocol/parse-request.ts';
import type { ReplyWriter } from '../../../src/a2a/protocol/reply-writer.ts';
import { createPush } from '../../../src/a2a/push/create-push.ts';
import { createOwnAddresses, type OwnAddress } from '../../../src/a2a/push/own-webhook.ts';
import { METHODS, type A2aOperation, type A2aVersion } from '../../../src/a2a/wire/protocol.ts';
import { newTask, tasksWorld } from '../../gateway/tasks/tasks-world.ts';
import { DEFAULT_LIMITS } from '../../support/default-limits.ts';

export const PUBLIC_URL = 'https://gate.example';
export const OFFER = 'agent/provider-a:acme/agent';

export const caller = (account: string, run?: string): Caller => ({
  account,
  key: null,
  wallet: null,
  ...(run === undefined ? {} : { run: { parent: run } }),
});

const LIMITS: LimitsConfig = {
  ...DEFAULT_LIMITS,
  burst: 0,
  developmentRequestsPerMinute: 60,
  anonymousRequestsPerMinute: 1_000_000,
  tokensPerMinute: 1,
  chatBodyBytesMax: 1_000_000,
  mediaBodyBytesMax: 1_000_000,
  bodiesWaitMs: 0,
  bodyBytesMax: 1_000_000,
  messagesMax: 1,
  requestTimeoutMs: 5_000,
  clientStallMs: 5_000,
  drainOnShutdownMs: 0,
};

/** Tasks with their ledger, webhooks, and a server with the agents' way in. Receivers are on loopback. */
export async function pushWorld({ allowPrivate = true, publicUrl = PUBLIC_URL } = {}) {
  const world = await tasksWorld('sqlite');
  const { database, tasks } = world.one;
  const lost: LostDelivery[] = [];
  const errors: unknown[] = [];
  const webhooks = createWebhooks({
    database,
    fetch: createGuardedFetch({ allowPrivate }),
    secret: Buffer.alloc(32, 1),
    now: () => world.clock.now,
    pollMs: 0,
    onLost: (one) => lost.push(one),
    onError: (error) => errors.push(error),
  });
  const catalog = { offers: () => [{ id: OFFER, priceCap: null }] } as unknown as Pick<Catalog, 'offers'>;
  const push = createPush({
    webhooks,
    tasks,
    catalog,
    allowPrivate,
    publicUrl,
    poll: async () => null,
    secret: Buffer.alloc(32, 2),
    limits: LIMITS,
    now: () => world.clock.now,
    onError: (error) => errors.push(error),
  });
  const addresses = createOwnAddresses({ secret: Buffer.alloc(32, 2), publicUrl, now: () => world.clock.now });
  const server = createServer({ limits: LIMITS, onError: (error) => errors.push(error) });
  await server.register(push.routes);
  const address = await server.listen({ port: 0, host: '127.0.0.1' });
  onTestFinished(async () => {
    await server.close();
    await webhooks.close();
  });

  /** Answers an operation as a route does; throws what is wrong. */
  const answer = async (
    version: A2aVersion,
    operation: A2aOperation,
    params: A2aRequest['params'],
    by = caller('alice'),
    service = 'acme/agent',
  ): Promise<unknown> => {
    let result: unknown;
    const out: Pick<ReplyWriter, 'result'> = {
      async result(text) {
        result = JSON.parse(text as string);
      },
    };
    await push.answer(ask(version, operation, params, by, service), out as ReplyWriter, async () => {});
    return result;
  };

  return {
    ...world,
    tasks,
    webhooks,
    push,
    /** One of our own webhooks, as an agent may have been given it. */
    urlFor: (address: OwnAddress) => addresses.urlFor(address)!,
    answer,
    lost,
    errors,
    /** A task of alice that goes on, with a call that is paid at its end. */
    async begin(taskId = 'task-1', changes: Parameters<typeof newTask>[1] = {}) {
      const call = await world.lock();
      await tasks.begin(newTask(taskId, changes), call);
      return call;
    },
    /** POSTs to one of our own webhooks. */
    post: (
      url: string,
      body: unknown,
      headers: Readonly<Record<string, string>> = { 'content-type': 'application/json' },
    ) =>
      fetch(url.replace(PUBLIC_URL, address), {
        method: 'POST',
        headers,
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
  };
}

function ask(
  version: A2aVersion,
  operation: A2aOperation,
  params: A2aRequest['params'],
  by: Caller,
  service: string,
): A2aRequest {
  return {
    operation,
    version,
    service,
    params,
    paramsText: JSON.stringify(params),
    caller: by,
    requestId: `${(METHODS[version] as Partial<Record<A2aOperation, string>>)[operation]}-1`,
    traceparent: null,
    wantsReceipt: false,
    maxCost: null,
    extensions: null,
    origin: () => null,
    rpcId: null,
  };
}

import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished } from 'vitest';
import { createGuardedFetch } from '../../../src/gateway/network/upstream/guarded-fetch.ts';
import type { LostDelivery, Webhook } from '../../../src/gateway/webhooks/webhook.ts';
import { type Webhooks, type WebhooksOptions, createWebhooks } from '../../../src/gateway/webhooks/webhooks.ts';
import { openEngine, type EngineName } from '../../support/engines.ts';

export interface Got {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** What a receiver does with what it gets; by default it answers 200. */
export type Answer = (got: Got, response: ServerResponse) => void;

/** A receiver on loopback that notes what it gets, in the order in which it gets it. */
export async function listenForNews(answer: Answer = (_got, response) => void response.end()) {
  const got: Got[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const news = { path: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks).toString() };
      got.push(news);
      for (const wake of waiting.splice(0)) wake();
      answer(news, response);
    });
  });
  const waiting: (() => void)[] = [];
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/news`,
    got,
    bodies: () => got.map(({ body }) => body),
    /** Resolves when so much has come. */
    async until(count: number) {
      while (got.length < count) await new Promise<void>((resolve) => waiting.push(resolve));
    },
  };
}

export const KEY = { primitive: 'agent', service: 'acme/agent', taskId: 'task-1' } as const;
export const ALICE = { account: 'alice', within: null };

export const hook = (url: string, change: Partial<Webhook> = {}): Webhook => ({
  name: 'a',
  form: 'plain',
  url,
  headers: {},
  notes: '{}',
  ...change,
});

/** An event with this text, told to every form. */
export const event = (body: string, identity: string | null = body) => ({
  identity,
  contentOf: () => ({ contentType: 'application/json', body }),
});

/**
 * A database with as many gateways as are asked for, whose clock is the test's: nothing is sent but by `run`, or
 * where something is delivered.
 */
export async function openWorld(engine: EngineName) {
  const clock = { now: 1_700_000_000_000 };
  const opened = await openEngine(engine);
  const lost: LostDelivery[] = [];
  const errors: unknown[] = [];
  const gateways: Webhooks[] = [];
  onTestFinished(async () => {
    await Promise.all(gateways.map((one) => one.close()));
    await opened.dispose();
    expect(errors).toEqual([]);
  });
  const gateway = (change: Partial<WebhooksOptions> = {}): Webhooks => {
    const made = createWebhooks({
      database: opened.database,
      fetch: createGuardedFetch({ allowPrivate: true }),
      secret: Buffer.alloc(32, 7),
      now: () => clock.now,
      random: () => 0.5,
      pollMs: 0,
      onLost: (one) => lost.push(one),
      onError: (error) => errors.push(error),
      ...change,
    });
    gateways.push(made);
    return made;
  };
  return { clock, database: opened.database, again: opened.again, gateway, lost, errors };
}

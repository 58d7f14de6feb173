import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type OpenAI from 'openai';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createIdentity } from '#auth/identity';
import { createSealedTexts } from '#security';
import { sealOf } from '../../../src/gateway/webhooks/webhook.ts';
import { adHoc } from '../../support/ad-hoc.ts';
import { IDENTITY_SEED, UNHURRIED } from '../../support/spine.ts';
import { begin, CHAT, chatLine, clientAt, ended, jsonl, until, upload, type OwnBatch } from './support/batch-client.ts';
import { spineOfFile } from '../../support/of-file.ts';

// callback_url: the end of a batch is told, in the form of OpenAI's webhooks. OpenAI's SDK checks and reads it.

let client: OpenAI;
const spine = spineOfFile(() => ({ toml: `${UNHURRIED}[webhooks]\nallow_private = true\n` }));
beforeAll(() => {
  client = clientAt(`${spine.origin}/v1`, spine.key);
});

interface Told {
  readonly body: string;
  readonly headers: Record<string, string>;
}

/** Answers with these statuses, then with 204. */
async function startReceiver(statuses: number[] = []) {
  const told: Told[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      let body = '';
      for await (const chunk of request as AsyncIterable<Buffer>) body += chunk.toString();
      told.push({ body, headers: request.headers as Record<string, string> });
      response.writeHead(statuses.shift() ?? 204).end();
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { told, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/told` };
}

type Begun = OwnBatch & { readonly tollgate: { readonly callback_secret: string } };
const beginTold = async (lines: readonly unknown[], url: string) =>
  (await begin(client, lines, { callback_url: url })) as Begun;

async function restrictedKey(): Promise<string> {
  const response = await spine.post('/keys', { name: 'restricted', limit: 1 });
  expect(response.status).toBe(201);
  return ((await response.json()) as { key: string }).key;
}

describe('a batch with a callback_url', () => {
  test('that is completed is told, and checked by the SDK', async () => {
    const { told, url } = await startReceiver();
    const { id, tollgate } = await beginTold([chatLine('a', 'ping !tokens:5')], url);
    await until(() => told.length > 0);
    const [{ body, headers }] = told as [Told];
    const event = await client.webhooks.unwrap(body, headers, tollgate.callback_secret);
    expect(event).toEqual({
      id: `${id}-completed`,
      object: 'event',
      type: 'batch.completed',
      created_at: expect.any(Number),
      data: { id },
    });
    // Whoever is told can read the end at once.
    const batch = await client.batches.retrieve(id);
    expect(batch).toMatchObject({ status: 'completed', completed_at: event.created_at });
    expect((batch as OwnBatch).tollgate).not.toHaveProperty('callback_secret');
    await expect(
      client.webhooks.unwrap(body.replace('completed', 'failed'), headers, tollgate.callback_secret),
    ).rejects.toThrow();
    await expect(client.webhooks.unwrap(body, headers, `whsec_${'A'.repeat(44)}`)).rejects.toThrow();
  });

  test('that fails is told, again where the receiver fails, with one id', async () => {
    const { told, url } = await startReceiver([500]);
    const { id, tollgate } = await beginTold([chatLine('a', 'x', { model: 'test/nobody' })], url);
    await until(() => told.length > 1);
    const events = [];
    for (const { body, headers } of told)
      events.push(await client.webhooks.unwrap(body, headers, tollgate.callback_secret));
    expect(events).toMatchObject([
      { type: 'batch.failed', data: { id } },
      { type: 'batch.failed', data: { id } },
    ]);
    expect(new Set(told.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    expect((await ended(client, id)).status).toBe('failed');
  });

  test('is told at the address of the request that made it, whatever else comes with its idempotency key', async () => {
    const receivers = await Promise.all(Array.from({ length: 6 }, () => startReceiver()));
    const file = await upload(client, jsonl([chatLine('a', 'ping !tokens:5')]));
    const body = { input_file_id: file.id, endpoint: CHAT, completion_window: '24h' } as const;
    const headers = { 'idempotency-key': 'told-once' };
    const gate = Promise.withResolvers<void>();
    spine.provider.hold(gate.promise);
    const asked = await Promise.allSettled(
      receivers.map(({ url }) => client.batches.create({ ...body, callback_url: url } as typeof body, { headers })),
    );
    const taken = asked.findIndex(({ status }) => status === 'fulfilled');
    const repeat = { ...body, callback_url: receivers[taken]!.url } as typeof body;
    const { id } = await client.batches.create(repeat, { headers });
    gate.resolve();
    spine.provider.hold(null);
    await until(() => receivers[taken]!.told.length > 0);
    for (const [n, result] of asked.entries())
      if (n !== taken) expect(result).toMatchObject({ status: 'rejected', reason: { status: 409 } });
    expect(JSON.parse(receivers[taken]!.told[0]!.body)).toMatchObject({ data: { id } });
    // The message of a later batch comes after all of this one.
    const later = await startReceiver();
    await beginTold([chatLine('a', 'ping !tokens:5')], later.url);
    await until(() => later.told.length > 0);
    expect(receivers.map(({ told }) => told.length)).toEqual(receivers.map((_, n) => (n === taken ? 1 : 0)));
  });

  test('has the secret of the key that asked: a restricted key cannot sign for the other keys', async () => {
    const { told, url } = await startReceiver();
    const whole = await beginTold([chatLine('a', 'ping !tokens:5')], url);
    const restricted = clientAt(`${spine.origin}/v1`, await restrictedKey());
    const headers = { 'idempotency-key': 'restricted-once' };
    const file = await upload(restricted, jsonl([chatLine('a', 'ping !tokens:5')]));
    const body = { input_file_id: file.id, endpoint: CHAT, completion_window: '24h', callback_url: url } as const;
    const create = async () => (await restricted.batches.create(body, { headers })) as Begun;
    const its = (await create()).tollgate.callback_secret;
    const another = clientAt(`${spine.origin}/v1`, await restrictedKey());
    const theirs = (await begin(another, [chatLine('a', 'ping !tokens:5')], { callback_url: url })) as Begun;
    const secrets = [whole.tollgate.callback_secret, its, theirs.tollgate.callback_secret];
    expect(new Set(secrets).size).toBe(3);
    expect((await create()).tollgate.callback_secret).toBe(its);
    await until(() => told.length === 3);
    // Each secret checks the message of its own batch, and no other.
    for (const secret of secrets) {
      const checked = await Promise.allSettled(
        told.map((each) => client.webhooks.unwrap(each.body, each.headers, secret)),
      );
      expect(checked.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    }
  });

  test('that an earlier version began keeps the secret that was told then', async () => {
    const { told, url } = await startReceiver();
    const key = await restrictedKey();
    const restricted = clientAt(`${spine.origin}/v1`, key);
    const file = await upload(restricted, jsonl([chatLine('a', 'ping !tokens:5')]));
    const body = { input_file_id: file.id, endpoint: CHAT, completion_window: '24h', callback_url: url } as never;
    const headers = { 'idempotency-key': 'of-an-earlier-version' };
    const gate = Promise.withResolvers<void>();
    spine.provider.hold(gate.promise);
    onTestFinished(() => {
      gate.resolve();
      spine.provider.hold(null);
    });
    const { id } = await restricted.batches.create(body, { headers });
    // An earlier version noted the secret of the account for every key.
    const whole = await beginTold([chatLine('a', 'ping !tokens:5')], url);
    const former = whole.tollgate.callback_secret;
    const { database } = spine.app;
    const [row] = await database.query(adHoc(`SELECT * FROM webhooks WHERE task_id = '${id}'`));
    const texts = createSealedTexts(createIdentity({ seed: IDENTITY_SEED }).secret('webhooks'));
    const owner = { account: row!['account'] as string, within: row!['run'] as string };
    const of = sealOf({ primitive: 'model', service: 'batches', taskId: id }, owner, row!['name'] as string);
    const receiver = JSON.parse(texts.open(of, row!['sealed'] as string)!) as object;
    const sealed = texts.seal(of, JSON.stringify({ ...receiver, signingKey: former }));
    await database.query(adHoc(`UPDATE webhooks SET sealed = '${sealed}' WHERE task_id = '${id}'`));

    const repeated = (await restricted.batches.create(body, { headers })) as Begun;
    expect(repeated.tollgate.callback_secret).toBe(former);
    gate.resolve();
    spine.provider.hold(null);
    const its = () => told.find((each) => each.body.includes(id));
    await until(() => its() !== undefined);
    await client.webhooks.unwrap(its()!.body, its()!.headers, former);
  });

  test('that is cancelled is told', async () => {
    const gate = Promise.withResolvers<void>();
    spine.provider.hold(gate.promise);
    const { told, url } = await startReceiver();
    const { id } = await beginTold([chatLine('a', 'ping !tokens:5')], url);
    await client.batches.cancel(id);
    gate.resolve();
    spine.provider.hold(null);
    await until(() => told.length > 0);
    expect(JSON.parse(told[0]!.body)).toMatchObject({ type: 'batch.cancelled', data: { id } });
  });
});

test.each(['ftp://example.com/x', 'https://user:secret@example.com/', 'no address'])(
  'the address %s is refused, and no batch is created',
  async (url) => {
    const before = (await client.batches.list()).data.length;
    await expect(beginTold([chatLine('a', 'x')], url)).rejects.toMatchObject({ status: 400, param: 'callback_url' });
    expect((await client.batches.list()).data).toHaveLength(before);
  },
);

import { describe, expect, test } from 'vitest';
import type { Offer } from '#catalog';
import { createOwnAddresses, PUSH_PATH } from '../../../src/a2a/push/own-webhook.ts';
import { withOwnWebhook } from '../../../src/a2a/agent/agent-request.ts';
import { listenForNews } from '../../gateway/webhooks/webhook-world.ts';
import { PRICE } from '../../gateway/tasks/tasks-world.ts';
import { OFFER, PUBLIC_URL, pushWorld } from './push-world.ts';

const ADDRESS = { offerId: OFFER, service: 'acme/agent', taskId: 'task-1', account: 'alice', within: null };
const task = (state: string, id = 'task-1') => ({ kind: 'task', id, contextId: 'c', status: { state } });
const DAY_MS = 24 * 3_600_000;

describe('an address', () => {
  const now = () => 1_000;
  const addresses = createOwnAddresses({ secret: Buffer.alloc(32, 1), publicUrl: PUBLIC_URL, now });
  const sealedOf = (url: string | null) => url!.slice(`${PUBLIC_URL}${PUSH_PATH}`.length);

  test('says what it is for to nobody but us, and differs each time', () => {
    const [one, two] = [addresses.urlFor(ADDRESS)!, addresses.urlFor(ADDRESS)!];
    expect(one).not.toBe(two);
    expect(addresses.open(sealedOf(one))).toEqual(ADDRESS);
    expect(addresses.open(sealedOf(addresses.urlFor({ ...ADDRESS, taskId: null, within: 'gen-1' })))).toEqual({
      ...ADDRESS,
      taskId: null,
      within: 'gen-1',
    });
    expect(Buffer.from(sealedOf(one), 'base64url').toString('latin1')).not.toContain('alice');
    expect(URL.parse(one)!.href).toBe(one);
  });

  test('cannot be forged, changed or used for ever', () => {
    const sealed = sealedOf(addresses.urlFor(ADDRESS));
    for (let at = 0; at < sealed.length; at += 7) {
      const changed = `${sealed.slice(0, at)}${sealed[at] === 'A' ? 'B' : 'A'}${sealed.slice(at + 1)}`;
      if (Buffer.from(changed, 'base64url').equals(Buffer.from(sealed, 'base64url'))) continue;
      expect(addresses.open(changed)).toBeNull();
    }
    for (const strange of ['', 'A', '.', '__proto__', 'A'.repeat(100), 'A'.repeat(100_000), '%00'])
      expect(addresses.open(strange)).toBeNull();
    const at = (ms: number, secret = 1) =>
      createOwnAddresses({ secret: Buffer.alloc(32, secret), publicUrl: null, now: () => ms });
    expect(at(1_000, 2).open(sealed)).toBeNull();
    expect(at(59 * DAY_MS).open(sealed)).toEqual(ADDRESS);
    expect(at(61 * DAY_MS).open(sealed)).toBeNull();
  });

  test('is there only where the gateway knows its own', () => {
    expect(createOwnAddresses({ secret: Buffer.alloc(32), publicUrl: null, now }).urlFor(ADDRESS)).toBeNull();
  });
});

describe('what an agent tells', () => {
  test.each([
    ['0.3', task('completed'), 'application/json'],
    [
      '1.0',
      { task: { id: 'task-1', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' } } },
      'application/a2a+json',
    ],
    [
      '1.0',
      { statusUpdate: { taskId: 'task-1', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' } } },
      'text/plain',
    ],
  ])('in %s settles its task, once, and is told to the client', async (_version, body, contentType) => {
    const { begin, post, urlFor, answer, tasks, money, audited, webhooks } = await pushWorld();
    await begin();
    const receiver = await listenForNews();
    await answer('0.3', 'push-set', { taskId: 'task-1', pushNotificationConfig: { url: receiver.url } });
    const url = urlFor(ADDRESS);
    for (let n = 0; n < 3; n += 1) {
      const reply = await post(url, body, { 'content-type': contentType });
      expect(reply.status).toBe(204);
      expect(await reply.text()).toBe('');
    }
    expect(await tasks.find({ primitive: 'agent', service: 'acme/agent', taskId: 'task-1' }, ADDRESS)).toMatchObject({
      state: 'completed',
      live: false,
    });
    const [, locked, earned] = await money();
    expect([locked, earned > 0n && earned <= PRICE]).toEqual([0n, true]);
    await receiver.until(1);
    await webhooks.run();
    expect(receiver.got.map((got) => JSON.parse(got.body) as unknown)).toMatchObject([
      { ...task('completed'), metadata: { 'tollgate/generation': { cost: '0.00006', currency: 'USDC' } } },
    ]);
    await audited();
  });

  test('of the task that its message began counts where the address names none', async () => {
    const { begin, post, push, tasks } = await pushWorld();
    await begin();
    expect(
      (
        await post(
          push.ownWebhook({ id: OFFER, service: 'acme/agent' } as Offer, { account: 'alice', within: null }, null)!,
          task('working'),
        )
      ).status,
    ).toBe(204);
    expect(await tasks.find({ primitive: 'agent', service: 'acme/agent', taskId: 'task-1' }, ADDRESS)).toMatchObject({
      state: 'working',
      live: true,
    });
  });

  test('of what is not its own is not there, and changes nothing', async () => {
    const { begin, post, urlFor, tasks } = await pushWorld();
    await begin();
    const strangers = [
      { ...ADDRESS, taskId: 'task-2' },
      { ...ADDRESS, account: 'bob' },
      { ...ADDRESS, within: 'gen-1' },
      { ...ADDRESS, offerId: 'agent/provider-b:acme/agent' },
      { ...ADDRESS, service: 'acme/other' },
    ];
    for (const address of strangers)
      expect((await post(urlFor(address), task('completed', address.taskId))).status).toBe(404);
    expect((await post(urlFor(ADDRESS), task('completed', 'task-2'))).status).toBe(400);
    expect(await tasks.find({ primitive: 'agent', service: 'acme/agent', taskId: 'task-1' }, ADDRESS)).toMatchObject({
      live: true,
    });
  });

  test('at an address that is not ours is answered as any other that there is not', async () => {
    const { post } = await pushWorld();
    for (const forged of ['', 'x', 'A'.repeat(300), '..%2f..', '%00', '__proto__']) {
      const reply = await post(`${PUBLIC_URL}${PUSH_PATH}${forged}`, task('completed'));
      expect(reply.status).toBe(404);
      expect(await reply.json()).toMatchObject({ error: {} });
    }
  });

  test.each<[string, string]>([
    ['nothing', ''],
    ['no JSON', '{"task":'],
    ['no object', '[]'],
    ['null', 'null'],
    ['no task', '{"a":1}'],
    ['a message', '{"kind":"message","messageId":"m","role":"agent","parts":[]}'],
    ['a task without an id', '{"task":{"status":{"state":"TASK_STATE_WORKING"}}}'],
    ['an id that is none', '{"kind":"task","id":{"toString":1},"status":{"state":"working"}}'],
    ['brackets', '['.repeat(100_000)],
    ['keys', `{${Array.from({ length: 20_000 }, (_, n) => `"k${n}":0`).join()}}`],
    ['prototypes', '{"__proto__":{"kind":"task"},"constructor":{"prototype":{}}}'],
    ['bytes', '\u0000\uffff'],
  ])('that is %s is refused', async (_what, body) => {
    const { begin, post, urlFor, errors } = await pushWorld();
    await begin();
    const reply = await post(urlFor(ADDRESS), body);
    expect(reply.status).toBe(400);
    expect(errors).toEqual([]);
  });

  test('without a body is refused as what it is', async () => {
    const { urlFor, post, errors } = await pushWorld();
    const sent = await post(urlFor(ADDRESS), task('working'));
    // Without a body there is no content type either.
    const reply = await fetch(sent.url, { method: 'POST' });
    expect([reply.status, errors]).toEqual([400, []]);
    expect(await reply.text()).toContain('The body is empty');
  });

  test('that is too large is refused', async () => {
    const { begin, post, urlFor } = await pushWorld();
    await begin();
    expect((await post(urlFor(ADDRESS), { ...task('working'), metadata: { a: 'x'.repeat(1024 * 1024) } })).status).toBe(
      413,
    );
  });
});

describe('a message to an agent', () => {
  test.each([
    [
      '1.0',
      '{"message":{},"configuration":{"taskPushNotificationConfig":{"url":"https://client","token":"secret"},"a":1e3}}',
      '{"message":{},"configuration":{"taskPushNotificationConfig":{"url":"OURS"},"a":1e3}}',
    ],
    [
      '0.3',
      '{"configuration":{"a":1,"pushNotificationConfig":{"url":"https://client"}},"message":{}}',
      '{"configuration":{"a":1,"pushNotificationConfig":{"url":"OURS"}},"message":{}}',
    ],
    ['0.3', '{"message":{}}', '{"message":{},"configuration":{"pushNotificationConfig":{"url":"OURS"}}}'],
    [
      '1.0',
      '{"message":{},"configuration":{"pushNotificationConfig":{"url":"https://client"}}}',
      '{"message":{},"configuration":{"taskPushNotificationConfig":{"url":"OURS"}}}',
    ],
    [
      '1.0',
      '{"message":{},"configuration":null}',
      '{"message":{},"configuration":{"taskPushNotificationConfig":{"url":"OURS"}}}',
    ],
  ] as const)('of %s has our webhook in place of the client’s', (version, text, changed) => {
    expect(withOwnWebhook(version, text, 'OURS')).toBe(changed);
  });

  test.each([
    [
      '1.0',
      '{"configuration":{"taskPushNotificationConfig":{"token":"secret"},"returnImmediately":true}}',
      '{"configuration":{"returnImmediately":true}}',
    ],
    ['0.3', '{"configuration":{"pushNotificationConfig":{"token":"secret"}}}', '{"configuration":{}}'],
    ['0.3', '{"configuration":{"p\\u0075shNotificationConfig":{"token":"secret"}}}', '{"configuration":{}}'],
    ['1.0', '{"message":{}}', '{"message":{}}'],
  ] as const)('of %s has none where we have none', (version, text, changed) => {
    expect(withOwnWebhook(version, text, null)).toBe(changed);
  });
});

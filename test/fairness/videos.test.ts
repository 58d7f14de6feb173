import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bystand, expectUnharmed } from '../support/bystander.ts';
import { dialIn, type DialledIn } from '../support/dial-in.ts';
import { startGateway, type Gateway } from '../support/gateway.ts';
import { DOMAIN } from '../support/wallets.ts';
import { type Queued, startVideoProvider, videoBlock, type VideoProvider } from '../media/support/video-provider.ts';

// Four strangers offer free videos whose files come one byte a second, or never. Accounts without money ask for all
// that they can get. Another customer's videos come as fast as they do alone.

const FREE = 'per_second = { "720p" = 0 }';
const STRANGERS = 4;
const POOR = 5;
const MIB = 1024 * 1024;

let honest: VideoProvider;
let slow: VideoProvider;
let gateway: Gateway;
const proxies: DialledIn[] = [];
/** Files of strangers that were begun, and those that were ended. */
const trickles = { begun: 0, ended: 0 };

beforeAll(async () => {
  [honest, slow] = [await startVideoProvider(), await startVideoProvider()];
  slow.begin(() => ({
    serve(_request, response) {
      trickles.begun += 1;
      response.writeHead(200, { 'content-type': 'video/mp4' });
      response.write('\0\0\0\x18ftypisom\0\0\0\0');
      const timer = setInterval(() => response.write('x'), 1_000);
      void once(response, 'close').then(() => {
        clearInterval(timer);
        trickles.ended += 1;
      });
    },
  }));
  gateway = await startGateway({
    env: { TOLLGATE_SIGN_IN_DOMAINS: DOMAIN },
    toml:
      '[limits]\nrequests_per_minute = 1000000\nburst = 1000000\n' +
      `[media]\nfree_bytes_min = 0\nbytes_max = ${5_120 * MIB}\n${videoBlock({ url: honest.url })}`,
  });
  const router = gateway.baseUrl;
  for (let index = 0; index < STRANGERS; index += 1) {
    const services = videoBlock({
      name: `free-${index}/film`,
      provider: `Free ${index}`,
      url: slow.url,
      pricing: FREE,
    });
    proxies.push(await dialIn({ router, services }));
  }
  proxies.push(await dialIn({ router, services: videoBlock({ name: 'far/film', provider: 'Far', url: honest.url }) }));
});
afterAll(async () => {
  for (const proxy of proxies) proxy.kill();
  await gateway?.stop();
  await slow?.close();
  await honest?.close();
});

const post = (key: string, path: string, body: object) =>
  fetch(`${gateway.baseUrl}/api/v1${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
const queue = (key: string, model: string, n = 1) =>
  post(key, '/video/queue', { model, prompt: 'A tollgate', duration: '4s', n });
const served = (key: string, model: string) => async () => {
  const { id } = (await (await queue(key, model)).json()) as Queued;
  const answer = await post(key, '/video/retrieve', { task_id: id, wait_for_final: true });
  const bytes = await answer.arrayBuffer();
  return answer.headers.get('content-type') === 'video/mp4' && bytes.byteLength > 1_000;
};

test('files that come one byte a second keep no slot from the videos of others', { timeout: 900_000 }, async () => {
  const customer = await gateway.openAccount('customer', 100);
  const poor = await gateway.openAccount('poor', 0);
  for (const model of ['test/film', 'far/film']) {
    const call = served(customer.key, model);
    await call();
    const before = await bystand({ call });
    for (let index = 0; index < STRANGERS; index += 1)
      expect((await queue(poor.key, `free-${index}/film`, 2)).status).toBe(200);
    await expect.poll(() => trickles.begun - trickles.ended).toBeGreaterThanOrEqual(2);
    const during = await bystand({ call });
    console.log(`  ${model}: alone ${JSON.stringify(before)}, beside slow files ${JSON.stringify(during)}`);
    expectUnharmed(before, during);
  }
  // Each of them is ended after half a minute.
  await expect.poll(() => trickles.ended, { timeout: 120_000 }).toBeGreaterThanOrEqual(4);
  expect(await gateway.admin('GET', '/audit')).toMatchObject({ data: { ok: true } });
});

test('free videos that never end leave room for the videos of others', { timeout: 900_000 }, async () => {
  const customer = await gateway.openAccount('another-customer', 100);
  slow.begin(() => ({ status: 'in_progress' }));
  const statuses: Record<number, number> = {};
  let begun = 0;
  for (let index = 0; index < POOR; index += 1) {
    const { key } = await gateway.openAccount(`poor-${index}`, 0.01);
    for (;;) {
      const answer = await queue(key, `free-${index % STRANGERS}/film`, 4);
      statuses[answer.status] = (statuses[answer.status] ?? 0) + 1;
      await answer.arrayBuffer();
      if (answer.status !== 200) break;
      begun += 4;
    }
  }
  const fare = await bystand({ call: served(customer.key, 'test/film') });
  console.log(`  ${begun} free videos under way, answers ${JSON.stringify(statuses)}; others ${JSON.stringify(fare)}`);
  expect(begun).toBeGreaterThan(40);
  expect(fare.served).toBe(fare.tried);
  expect(await gateway.admin('GET', '/audit')).toMatchObject({ data: { ok: true } });
});

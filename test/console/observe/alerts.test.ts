import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createAlerts, subjectOf } from '../../../src/console/observe/alerts.ts';
import { createLogger } from '../../../src/console/observe/logger.ts';
import { load } from '../../server/config/load.ts';

interface Posted {
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
  readonly body: {
    readonly level: string;
    readonly message: string;
    readonly repeated: number;
    readonly facts: object;
  };
}

const SECRET = 'a-secret-of-the-alerts';
let posted: Posted[];
let statuses: number[];
let url: string;
let close: () => void;
beforeEach(async () => {
  posted = [];
  statuses = [];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const text = Buffer.concat(parts).toString('utf8');
      posted.push({ headers: request.headers, text, body: JSON.parse(text) as Posted['body'] });
      response.writeHead(statuses.shift() ?? 204).end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  close = () => server.close();
});
afterEach(() => {
  vi.useRealTimers();
  close();
});

const start = (toml = '', againMs?: number) => {
  const config = load(`[alerts]\nurl = "${url}"\nsecret = "${SECRET}"\n${toml}`);
  const alerts = createAlerts(config.alerts, {
    retryMs: 1,
    ...(againMs === undefined ? {} : { againMs }),
    onLost: (lost) => logger.info(lost, 'an alert was given up'),
  })!;
  const lines: string[] = [];
  const { logger } = createLogger(config, { also: alerts.take, write: (line) => lines.push(line), style: 'json' });
  return { alerts, logger, lines };
};
const messages = () => posted.map(({ body }) => body.message);

it('posts errors, signed, and no other lines', async () => {
  const { alerts, logger } = start();
  logger.info({ a: 1 }, 'nothing special');
  logger.warn('look within the day');
  logger.error({ network: 'eip155:1', password: 'hidden' }, 'the treasury differs');
  logger.error(new Error('broken'));
  await alerts.close();
  expect(messages()).toEqual(['the treasury differs', 'broken']);
  const [first] = posted;
  expect(first!.body).toMatchObject({
    level: 'error',
    repeated: 0,
    facts: { network: 'eip155:1', password: '[redacted]' },
  });
  expect(first!.headers['x-tollgate-signature']).toBe(
    `sha256=${createHmac('sha256', SECRET).update(first!.text).digest('hex')}`,
  );
});

it('sends the user and password of its address as a header, because fetch refuses such an address', async () => {
  url = url.replace('//', '//me:p%40ss@');
  const { alerts, logger, lines } = start();
  logger.error('the treasury differs');
  await alerts.close();
  expect(messages()).toEqual(['the treasury differs']);
  expect(posted[0]!.headers.authorization).toBe(`Basic ${Buffer.from('me:p@ss').toString('base64')}`);
  expect(lines).toHaveLength(1);
});

it('posts one message once in a while, with how often it was there', async () => {
  const { alerts, logger } = start('', 1_000);
  const begun = Date.now();
  vi.useFakeTimers({ toFake: ['Date'] });
  for (const ms of [0, 1, 999, 1_000, 1_999, 2_000]) {
    vi.setSystemTime(begun + ms);
    logger.error('again');
  }
  vi.useRealTimers();
  await alerts.close();
  expect(posted.map(({ body }) => body.repeated)).toEqual([0, 2, 1]);
  posted = [];
  const quiet = start();
  for (let line = 0; line < 50; line += 1) quiet.logger.error('again and again');
  await quiet.alerts.close();
  expect(messages()).toEqual(['again and again']);
});

it('repeats a post that failed, and logs nothing of it', async () => {
  statuses = [500, 429];
  const { alerts, logger, lines } = start();
  logger.error('needs attention');
  await alerts.close();
  expect(messages()).toEqual(['needs attention', 'needs attention', 'needs attention']);
  expect(lines).toHaveLength(1);
});

it('posts warnings where that is wanted, and hides its own address and secret', async () => {
  const { alerts, logger, lines } = start('level = "warn"\n');
  logger.warn({ told: `${url} ${SECRET}` }, 'a chain is away');
  await alerts.close();
  expect(messages()).toEqual(['a chain is away']);
  expect(lines.join('') + posted[0]!.text).not.toContain(SECRET);
  expect(lines.join('') + posted[0]!.text).not.toContain(url);
});

it('posts lines that ask for it at every level, each provider for itself', async () => {
  const { alerts, logger } = start();
  const flagged = (provider: string) =>
    logger.warn({ provider, service: 'acme/model', flags: ['usage_missing'], alert: true }, 'provider flagged');
  for (const provider of ['Acme', 'Globex', 'Acme']) flagged(provider);
  logger.warn({ said: '"alert":true', provider: '{"alert":true}' }, '"alert":true');
  await alerts.close();
  expect(posted.map(({ body }) => body.facts)).toEqual(
    ['Acme', 'Globex'].map((provider) => ({ provider, service: 'acme/model', flags: ['usage_missing'] })),
  );
});

it('ends though nobody answers', async () => {
  close();
  const { alerts, logger } = start();
  logger.error('nobody listens');
  await alerts.close();
  expect(posted).toEqual([]);
});

it('is not there without an address', () => {
  expect(createAlerts(load('').alerts)).toBeNull();
});

it('does not repeat a post that is refused, and says that it was given up', async () => {
  statuses = [404];
  const { alerts, logger, lines } = start();
  logger.error('refused');
  logger.error('the next');
  await alerts.close();
  expect(messages()).toEqual(['refused', 'the next']);
  expect(lines.slice(2).map((line) => JSON.parse(line) as object)).toMatchObject([
    { level: 'info', msg: 'an alert was given up', message: 'refused', repeated: 0, reason: 'answered with 404' },
  ]);
});

it('says that it gave up what nobody answers', async () => {
  close();
  const { alerts, logger, lines } = start();
  logger.error('nobody listens');
  await expect.poll(() => lines.length).toBe(2);
  expect(JSON.parse(lines[1]!)).toMatchObject({ message: 'nobody listens', reason: 'no connection' });
  await alerts.close();
});

it('keeps errors, and posts them first, whatever else there is', async () => {
  const { alerts, logger, lines } = start();
  const spent = (key: object) =>
    logger.warn({ alert: true, key, percent: 80 }, 'a budget is spent to 80 %: key of tollgate:local:globex');
  spent({ hash: 'first', name: 'robot' });
  logger.error('withdrawals are stopped');
  for (let key = 0; key < 150; key += 1) spent({ hash: `hash-${key}`, name: 'robot' });
  // The first is under way. Closing waits only for so long.
  await expect.poll(() => posted.length, { timeout: 60_000 }).toBe(101);
  await alerts.close();
  expect(messages().slice(1, 2)).toEqual(['withdrawals are stopped']);
  expect(posted).toHaveLength(101);
  expect(posted.at(-1)!.body.facts).toMatchObject({ key: { hash: 'hash-149' } });
  expect(lines.filter((line) => line.includes(`"reason":"too many wait"`))).toHaveLength(51);
});

it('posts a line whose words look like a secret, which stays JSON', async () => {
  const { alerts, logger, lines } = start();
  logger.error({ err: new Error(`Invalid api_key:\nprovide another\nsk-${'Q'.repeat(40)}`) }, 'refused upstream');
  await alerts.close();
  expect(messages()).toEqual(['refused upstream']);
  expect(JSON.parse(lines[0]!)).toMatchObject({ msg: 'refused upstream' });
  expect(lines[0]).not.toContain('QQQ');
});

it('posts no line only because a consumer wrote "alert" into its metadata', async () => {
  const { alerts, logger } = start();
  logger.info({ account: 'a', metadata: { alert: true, of: { alert: true } } }, 'call');
  logger.info({ metadata: { alert: true }, alert: true }, 'provider flagged');
  await alerts.close();
  expect(messages()).toEqual(['provider flagged']);
});

it('names the key of a budget by its name', () => {
  const facts = { flags: ['a', 'b'], key: { hash: 'h', name: 'search-bot' }, limit_reset: 'monthly', limit_usd: '2' };
  expect(subjectOf(facts)).toBe('a,b search-bot monthly 2');
});

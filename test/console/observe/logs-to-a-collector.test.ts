import { expect, it } from 'vitest';
import { GatewayError } from '#errors';
import { createCallLog, createCallObserver, createLogger, createTracer } from '#observe';
import { createLogExport } from '../../../src/console/observe/log-receivers.ts';
import { load } from '../../server/config/load.ts';
import { exampleCall } from './example-call.ts';
import { logsOf, spansOf, startReceiver } from './otlp-receiver.ts';

// Lines of the log at a collector that speaks OTLP.

const TOML = '[telemetry]\nlogs_exporter = "otlp"\n';
type Options = NonNullable<Parameters<typeof createLogExport>[1]>;

const start = (endpoint: string, toml = '', options: Options = {}) => {
  const config = load(`${TOML}otlp_endpoint = "${endpoint}"\n${toml}`);
  const told: object[] = [];
  const collector = createLogExport(config, {
    version: '1.2.3',
    everyMs: 1,
    retryMs: 1,
    onLost: (lost) => told.push(lost),
    ...options,
  })!;
  const { logger, hide } = createLogger(config, { also: collector.take, write: () => {}, style: 'json' });
  return { collector, logger, hide, told };
};

it('are records with severity, time and facts, without secrets, and with the headers of the collector', async () => {
  const { endpoint, posts } = await startReceiver();
  const secret = 'canary-of-the-collector';
  const { collector, logger } = start(
    endpoint.replace('//', '//me:password@'),
    `otlp_headers = "x-tenant=a%20b,x-secret=${secret}"`,
  );
  const before = Date.now();
  logger.warn({ network: 'eip155:1', count: 3, share: 0.5, ok: true, none: null, list: [1, 'a'] }, 'a chain is away');
  logger.error(
    { password: 'hidden', told: `it was ${secret} with svc-sk-v2-abc123abc123`, err: new Error('broken') },
    'it failed',
  );
  await collector.close();
  expect(posts).toHaveLength(1);
  const [{ path, headers, body }] = posts as [(typeof posts)[number]];
  expect(path).toBe('POST /v1/logs');
  expect(headers).toMatchObject({
    'content-type': 'application/json',
    'x-tenant': 'a b',
    authorization: `Basic ${Buffer.from('me:password').toString('base64')}`,
  });
  expect(body.resourceLogs[0]!.resource.attributes).toEqual([
    { key: 'service.name', value: { stringValue: 'tollgate' } },
    { key: 'service.version', value: { stringValue: '1.2.3' } },
  ]);
  const [first, second] = logsOf(posts);
  expect(first).toMatchObject({
    severityNumber: 13,
    severityText: 'WARN',
    body: { stringValue: 'a chain is away' },
    attributes: [
      { key: 'network', value: { stringValue: 'eip155:1' } },
      { key: 'count', value: { intValue: '3' } },
      { key: 'share', value: { doubleValue: 0.5 } },
      { key: 'ok', value: { boolValue: true } },
      { key: 'none', value: {} },
      { key: 'list', value: { arrayValue: { values: [{ intValue: '1' }, { stringValue: 'a' }] } } },
    ],
  });
  expect(Number(BigInt(first!.timeUnixNano) / 1_000_000n)).toBeGreaterThanOrEqual(before);
  expect(second).toMatchObject({ severityNumber: 17, body: { stringValue: 'it failed' } });
  expect(JSON.stringify(second)).toContain('"type"');
  expect(JSON.stringify(posts.map((one) => one.body))).not.toMatch(/hidden|canary-of|abc123/);
  expect(collector.lost()).toBe(0);
});

it('name the span of their call', async () => {
  const { endpoint, posts } = await startReceiver();
  const { collector, logger } = start(endpoint);
  const tracer = await createTracer({ otlpEndpoint: endpoint });
  const observer = createCallObserver([createCallLog(logger, tracer.spanOf), tracer.sink], { now: Date.now });
  const call = exampleCall({ startedAt: Date.now() });
  observer.started(call);
  observer.failed(call, new GatewayError('insufficient_balance', 'Insufficient balance'));
  await tracer.close();
  await collector.close();
  const [span] = spansOf(posts);
  const [record] = logsOf(posts);
  expect(record).toMatchObject({ traceId: span!.traceId, spanId: span!.spanId, body: { stringValue: 'call' } });
  expect(record!.attributes.map(({ key }) => key)).not.toContain('trace_id');
});

it('are sent again where the collector may take them later', async () => {
  const { endpoint, posts } = await startReceiver(200, [
    [503, '{}'],
    [429, '{}'],
  ]);
  const { collector, logger, told } = start(endpoint);
  logger.info('once');
  await expect.poll(() => posts.length).toBe(3);
  await collector.close();
  expect(logsOf(posts).map(({ body }) => body.stringValue)).toEqual(['once', 'once', 'once']);
  expect([collector.lost(), told]).toEqual([0, []]);
});

it('are counted where they are refused, all or some', async () => {
  const { endpoint, posts } = await startReceiver(200, [
    [200, '{"partialSuccess":{"rejectedLogRecords":"2"}}'],
    [400, 'no'],
  ]);
  const { collector, logger, told } = start(endpoint);
  for (const line of ['a', 'b', 'c']) logger.info(line);
  await expect.poll(() => collector.lost()).toBe(2);
  logger.info('d');
  await expect.poll(() => collector.lost()).toBe(3);
  await collector.close();
  expect(posts).toHaveLength(2);
  // The log tells of it once a minute.
  expect(told).toEqual([{ lines: 2, reason: 'the collector refused some' }]);
});

it('wait in a bounded queue, in posts of bounded size, while the collector is away', async () => {
  const { endpoint, posts } = await startReceiver();
  const full = start(endpoint, '', { bytesMax: 100_000 });
  for (let line = 0; line < 2_000; line += 1) full.logger.info({ line }, 'x'.repeat(50));
  await full.collector.close();
  const sent = logsOf(posts);
  expect(sent.length).toBeLessThan(2_000);
  expect(sent.length + full.collector.lost()).toBe(2_000);
  expect(full.told).toEqual([{ lines: 1, reason: 'too many wait' }]);
  expect(Math.max(...posts.map((one) => logsOf([one]).length))).toBe(256);

  const gone = start('http://127.0.0.1:9');
  gone.logger.info('nobody');
  await expect.poll(() => gone.collector.lost()).toBe(1);
  await gone.collector.close();
  expect(gone.told).toEqual([{ lines: 1, reason: 'no answer' }]);
});

it('are sent only where that is configured', () => {
  expect(createLogExport(load('[telemetry]\notlp_endpoint = "http://127.0.0.1:9"\n'))).toBeNull();
  expect(() => load(TOML)).toThrow('is missing: telemetry.logs_exporter is "otlp"');
});

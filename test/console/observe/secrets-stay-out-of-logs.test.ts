import { describe, expect, it } from 'vitest';
import { GatewayError } from '#errors';
import { UpstreamFailure } from '#wire';
import { parseRates } from '#billing/amounts';
import { createCallLog, createCallObserver, createLogger } from '#observe';
import type { LoggerOptions } from '../../../src/console/observe/logger.ts';
import { exampleCall, exampleOffer, logConfig } from './example-call.ts';

const CANARY = 'canary9Zx7Qw3Tr5Yu1';
const ADMIN_KEY = `operator/"quoted"\\${CANARY}`;
const PROVIDER_KEY = `provider-secret-${CANARY}`;

function capture(style: LoggerOptions['style'] = 'json') {
  const lines: string[] = [];
  const config = logConfig({
    adminKey: ADMIN_KEY,
    databaseUrl: `postgres://gate:${CANARY}-pg@127.0.0.1/tollgate`,
    redisUrl: `redis://:${CANARY}-redis@127.0.0.1`,
    services: [
      {
        service: {
          primitive: 'model',
          name: 'a/b',
          displayName: 'A',
          providerName: 'A',
          description: '',
          rates: parseRates({}),
          variants: {},
          model: {
            upstreamModel: 'b',
            contextLength: 1,
            maxOutputTokens: null,
            inputModalities: ['text'],
            outputModalities: ['text'],
          },
        },
        target: { kind: 'http', url: 'http://127.0.0.1:1/v1', apiKey: PROVIDER_KEY },
      },
    ],
  });
  const { logger } = createLogger(config, { style: style ?? 'json', write: (line) => lines.push(line) });
  return { logger, text: () => lines.join('') };
}

// A canary in the place of every credential that passes through a gateway.
const HEADERS = [
  'authorization',
  'Authorization',
  'proxy-authorization',
  'x-api-key',
  'X-Api-Key',
  'sign-in-with-x',
  'SIGN-IN-WITH-X',
  'x-sign-in-with-x',
  'X-SIWX',
  'payment-signature',
  'PAYMENT-SIGNATURE',
  'x-payment',
  'cookie',
  'api_key',
  'apiKey',
  'private_key',
  'admin_key',
  'password',
];

describe('no secret reaches a log', () => {
  it.each(HEADERS)('as a member named %s, at any depth', (name) => {
    const { logger, text } = capture();
    logger.info({ [name]: CANARY }, 'flat');
    logger.warn({ request: { headers: { [name]: CANARY, accept: 'kept' }, list: [{ [name]: [CANARY] }] } }, 'deep');
    logger.info({ rawHeaders: ['accept', 'kept', name, CANARY] }, 'raw');
    logger.child({ [name]: CANARY }).error('in a child');
    expect(text()).not.toContain(CANARY);
    expect(text()).toContain('kept');
    expect(text().split('\n')).toHaveLength(5);
  });

  it.each(['json', 'text'] as const)('as the message of an error, its cause or its own members (%s)', (style) => {
    const { logger, text } = capture(style);
    const cause = Object.assign(new Error(`GET /v1 authorization: Bearer ${CANARY}`), {
      headers: { authorization: CANARY },
      code: 'UND_ERR',
    });
    const error = new Error(`could not reach postgres://gate:${CANARY}@db.internal/x with {"api_key":"${CANARY}"}`, {
      cause,
    });
    logger.error(error);
    logger.error({ err: error, reason: `x-siwx: ${CANARY}` }, `while sending "X-Payment":"${CANARY}"`);
    expect(text()).not.toContain(CANARY);
    expect(text()).toContain('could not reach postgres://gate:');
  });

  it('as a configured secret in any text, also where JSON has to escape it', () => {
    const { logger, text } = capture();
    logger.info({ note: `the key is ${PROVIDER_KEY}`, other: ADMIN_KEY }, `${PROVIDER_KEY} and ${CANARY}-pg`);
    expect(text()).not.toContain(CANARY);
  });

  it('as a secret of any option, and of a treasury that hands over', () => {
    const lines: string[] = [];
    const payments = { treasury: { keypairFile: 'key.json' }, previous: { privateKey: `previous-${CANARY}` } };
    const config = logConfig({
      identitySeed: `seed-${CANARY}`,
      media: { s3SecretAccessKey: `bucket-${CANARY}` } as never,
      chains: [{ network: 'eip155:1', rpcUrl: `https://node.example/${CANARY}`, payments: payments as never }],
    });
    const { logger } = createLogger(config, { style: 'json', write: (line) => lines.push(line) });
    for (const secret of ['seed', 'bucket', 'previous', 'https://node.example/'])
      logger.info(`it is ${secret}-${CANARY}`.replace('/-', '/'));
    expect(lines.join('')).not.toContain(CANARY);
  });

  it('as a key that is known by its form', () => {
    const { logger, text } = capture();
    const digits = 'Q'.repeat(44);
    for (const prefix of ['svc-sk-v2-', 'svc-sk-dev-', 'svc-admin-'])
      logger.info({ body: `{"x":"${prefix}${digits}"}` }, `${prefix}${digits}`);
    logger.info(`sk-${digits}`);
    logger.info({ protocols: `realtime, openai-insecure-api-key.ek_${digits}` }, `ek_${digits}`);
    expect(text()).not.toContain(digits);
  });

  it('and the examples of the messages about keys stay whole', () => {
    const { logger, text } = capture();
    const messages = [
      'send "Authorization: Bearer svc-sk-…" or "x-api-key: svc-sk-…"',
      'A client secret (ek_…) opens sessions at /realtime alone: send an API key here',
      'No admin key: send "Authorization: Bearer svc-admin-…"',
    ];
    for (const message of messages) logger.info(message);
    for (const message of messages) expect(text()).toContain(JSON.stringify(message).slice(1, -1));
  });

  it("in a call's metadata, and in what a provider said", () => {
    const { logger, text } = capture();
    const observer = createCallObserver([createCallLog(logger)], { now: () => 1_500 });
    const call = exampleCall({ metadata: { trace: 'kept', authorization: CANARY, nested: { api_key: CANARY } } });
    const failure = new UpstreamFailure(`401: Bearer ${CANARY} is not known`, {
      status: 401,
      retryable: true,
      attributedTo: 'provider',
    });
    observer.started(call);
    observer.attemptFailed(call, exampleOffer(), failure);
    observer.failed(call, new GatewayError('provider_unavailable', `Provider failed: ${failure.message}`));
    expect(text()).not.toContain(CANARY);
    expect(text()).toContain('kept');
  });

  it('through a request object of the server', () => {
    const { logger, text } = capture();
    logger.info({
      req: {
        method: 'POST',
        url: `/api/v1/models?api_key=${CANARY}`,
        id: 'r-1',
        headers: { authorization: CANARY },
        raw: {},
      },
    });
    expect(text()).not.toContain(CANARY);
    expect(text()).toContain('"path":"/api/v1/models"');
  });
});

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createOwnOrigin } from '#security';
import { createPaperChain, fromHeader } from '../support/paper-chain.ts';
import { requestOf, WIRES } from '../peers/wires.ts';
import { sendRaw } from '../support/raw-http.ts';
import { DOMAIN } from '../support/wallets.ts';
import { MODEL, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// Anybody can have a name of their own lead to this gateway. A visitor must not copy that name, because its owner can
// turn it to another server later, which then gets the visitor's key.

let open: Spine;
let behind: Spine;
beforeAll(async () => {
  const options = () => ({ toml: UNHURRIED, payments: createPaperChain().payments });
  open = await startSpine(options());
  behind = await startSpine({ ...options(), env: { TOLLGATE_TRUSTED_PROXIES: '127.0.0.1' } });
});
afterAll(async () => {
  await open.stop();
  await behind.stop();
});

const get = (spine: Spine, path: string, host: string, more = '') =>
  sendRaw(spine.origin, `GET ${path} HTTP/1.1\r\nhost: ${host}\r\n${more}connection: close\r\n\r\n`);

/** The gateway's address in the answer for each path. */
const SHOWN: Readonly<Record<string, (body: string) => unknown>> = {
  '/': (body) => /OPENAI_BASE_URL=(.*)\/api\/v1/.exec(body)?.[1],
  '/marketplace': baseUrlOf,
  [`/models/${MODEL}`]: baseUrlOf,
  '/there/is/no/such/page': baseUrlOf,
  '/.well-known/agent-card.json': cardOriginOf,
};
function baseUrlOf(body: string): unknown {
  return (JSON.parse(/id="boot">([^<]*)</.exec(body)![1]!) as { readonly base_url: unknown }).base_url;
}
function cardOriginOf(body: string): unknown {
  return new URL((JSON.parse(body) as { readonly url: string }).url).origin;
}
const UNKNOWN = (path: string, spine: Spine) =>
  path === '/' ? '&lt;this address&gt;' : path.includes('agent-card') ? spine.origin : '<this address>';

describe.each(Object.keys(SHOWN))('%s', (path) => {
  const shown = async (spine: Spine, host: string, more = '') =>
    SHOWN[path]!((await get(spine, path, host, more)).body);

  test.each(['evil.example', 'evil.example:8402', '127.0.0.1.evil.example', 'localhost.evil.example'])(
    'does not show the name of a stranger: %s',
    async (host) => {
      const { body } = await get(open, path, host, 'accept: text/html\r\n');
      expect(body).not.toContain('evil.example');
      expect(await shown(open, host, 'accept: text/html\r\n')).toBe(UNKNOWN(path, open));
    },
  );

  test.each(['127.0.0.1:8402', 'localhost:8402', '192.168.1.5:8402', '[::1]:8402', 'gateway:8402', DOMAIN])(
    'shows an address of its own: %s',
    async (host) => {
      expect(await shown(open, host, 'accept: text/html\r\n')).toBe(`http://${host}`);
    },
  );

  test('believes a trusted proxy no strange name either', async () => {
    const forwarded = (host: string) =>
      `accept: text/html\r\nx-forwarded-proto: https\r\nx-forwarded-host: ${host}\r\n`;
    expect(await shown(behind, '127.0.0.1', forwarded('evil.example'))).toBe(UNKNOWN(path, behind));
    expect(await shown(behind, '127.0.0.1', forwarded('gate.internal'))).toBe('https://gate.internal');
  });
});

describe.each([...WIRES, { ...WIRES[0]!, path: '/v1/chat/completions' }])('the terms of payment of $path', (wire) => {
  const { path, body: asked } = requestOf(wire, { model: MODEL, ...wire.ask('hello', 10) });
  /** The resource's address in the header and in the body of a 402. */
  async function shown(spine: Spine, host: string, more = ''): Promise<unknown[]> {
    const body = JSON.stringify(asked);
    const {
      status,
      headers,
      body: answer,
    } = await sendRaw(
      spine.origin,
      `POST ${path}?a=b HTTP/1.1\r\nhost: ${host}\r\n${more}content-type: application/json\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
    );
    expect(status).toBe(402);
    return [fromHeader(headers['payment-required']!), JSON.parse(answer) as object].map(
      (terms) => (terms as { readonly resource: { readonly url: unknown } }).resource.url,
    );
  }
  const at = (origin: string) => [`${origin}${full}`, `${origin}${full}`];
  const full = path.replace(/^\/v1\//, '/api/v1/').replace('/models/test/', '/models/test%2F');

  test('name no stranger', async () => {
    for (const host of ['evil.example', '127.0.0.1.evil.example:8402']) expect(await shown(open, host)).toEqual(at(''));
    const forwarded = (host: string) => `x-forwarded-proto: https\r\nx-forwarded-host: ${host}\r\n`;
    expect(await shown(behind, '127.0.0.1', forwarded('evil.example'))).toEqual(at(''));
    expect(await shown(behind, '127.0.0.1', forwarded('gate.internal'))).toEqual(at('https://gate.internal'));
  });

  test('name an address of its own', async () => {
    for (const host of ['127.0.0.1:8402', '[::1]:8402', 'gateway:8402', DOMAIN])
      expect(await shown(open, host)).toEqual(at(`http://${host}`));
  });
});

test('the log says once that the gateway does not know the name', async () => {
  for (const host of ['evil.example', 'other.example']) await get(open, '/', host);
  expect(open.logs.filter((line) => line.includes('set server.public_url'))).toHaveLength(1);
});

describe('the own origin', () => {
  const own = createOwnOrigin({ publicUrl: null, names: ['gate.example'] });
  const at = (host: string, protocol = 'http') => own({ host, protocol });

  test.each([
    ['LOCALHOST:8402', 'http://localhost:8402'],
    ['app.localhost', 'http://app.localhost'],
    ['203.0.113.9', 'http://203.0.113.9'],
    ['0x7f.1:8402', 'http://127.0.0.1:8402'],
    ['[2001:DB8::1]:8402', 'http://[2001:db8::1]:8402'],
    ['gateway', 'http://gateway'],
    ['printer.local.', 'http://printer.local'],
    ['gate.default.svc:8402', 'http://gate.default.svc:8402'],
    ['gate.default.svc.cluster.local', 'http://gate.default.svc.cluster.local'],
    ['gate.home.arpa', 'http://gate.home.arpa'],
    ['gate.example:9', 'http://gate.example:9'],
    ['gate.example.', 'http://gate.example'],
  ])('%s is known', (host, origin) => {
    expect(at(host)).toBe(origin);
  });

  test.each([
    'evil.example',
    'evil-local.example',
    'www.gate.example',
    'gate.example.evil.example',
    'evillocal.example',
    'local.example',
    '127.0.0.1.nip.example',
    'localhost@evil.example',
    'localhost:99999',
    'localhost/"',
    '',
  ])('%s is not', (host) => {
    expect(at(host)).toBeNull();
  });

  test('the protocol is http or https, and the configured address goes before all', () => {
    expect(at('gateway', 'https')).toBe('https://gateway');
    expect(at('gateway', 'javascript')).toBe('http://gateway');
    expect(createOwnOrigin({ publicUrl: 'https://gate.example' })({ host: 'gateway', protocol: 'http' })).toBe(
      'https://gate.example',
    );
  });
});

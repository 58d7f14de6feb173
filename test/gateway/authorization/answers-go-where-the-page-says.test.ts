import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isRedirect } from '../../../src/gateway/authorization/clients.ts';
import { startSpine, type Spine } from '../../support/spine.ts';
import { createPerson, type Person } from './support/person.ts';
import { RAW_CALLBACK, register, registerRaw, type RawClient } from './support/raw-client.ts';

/* The page names the host that gets the access. No form of an address makes it name another one, or none. */

let spine: Spine;
let person: Person;
let client: RawClient;
beforeAll(async () => {
  spine = await startSpine({ mode: 'development', toml: '[limits]\nanonymous_requests_per_minute = 1000\n' });
  person = createPerson(spine.origin, spine.key);
  client = await registerRaw(spine.origin);
});
afterAll(() => spine.stop());

describe('addresses that nobody can register', () => {
  test.each([
    'http://evil.example/',
    'http://localhost.evil.example/',
    'http://127.0.0.1.evil.example/',
    'http://127.0.0.1@evil.example/',
    'https://claude.ai@evil.example/',
    'http:evil.example',
    'http://0.0.0.0/',
    'http://localhost./',
    'http://10.0.0.1/',
    'https://127.0.0.1/',
    'https://a.example/#',
    'intent://evil#Intent',
    '\tjavascript:alert(1)',
    'java\nscript:alert(1)',
    'data:text/html,x',
    'blob:https://a.example/x',
    'filesystem:https://a.example/x',
    'view-source:https://a.example/',
    'about:blank',
    'chrome://settings',
    // They lead to other hosts, and the page would say that a program on this computer gets the access.
    'ftp://evil.example/',
    'ws://evil.example/',
    'wss://evil.example/',
    'mailto:thief@evil.example',
    'sms:1',
    'web+claude:callback',
    'microsoft-edge:https://evil.example/',
    'microsoft-edge:?url=https%3A%2F%2Fevil.example',
    'firefox://open-url?url=https://evil.example/',
    'steam://openurl/http://evil.example',
    'googlechrome://evil.example/',
    'googlechromes://evil.example/',
    'x-safari-https://evil.example/',
    'intent:x',
    'smb://evil.example/x',
    'ldap://evil.example/x',
    'xmpp:thief@evil.example',
    'tg://msg_url',
    '/callback',
    '',
    7,
  ])('%j', async (uri) => {
    const response = await fetch(`${spine.origin}/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ client_name: 'Trick', redirect_uris: [uri] }),
    });
    expect([response.status, await response.json()]).toEqual([
      400,
      expect.objectContaining({ error: 'invalid_redirect_uri' }),
    ]);
  });

  test('a page of the gateway itself, by every name of its machine', async () => {
    const { port } = new URL(spine.origin);
    for (const host of ['127.0.0.1', 'localhost', 'LOCALHOST', '[::1]', '127.1', '127.8.8.8'])
      await expect(
        register(spine.origin, { redirect_uris: [`http://${host}:${port}/dashboard`] }),
        host,
      ).rejects.toThrow(/invalid_redirect_uri/);
    // Programs listen on any port of loopback, but not on the gateway's.
    const program = await registerRaw(spine.origin, { redirect_uris: ['http://localhost/callback'] });
    const ask = (to: string) =>
      fetch(program.authorizeUrl({ redirect_uri: `http://localhost:${to}/callback` }), { redirect: 'manual' });
    expect((await ask('7879')).status).toBe(303);
    expect((await ask(port)).status).toBe(400);
  });

  test.each([
    ['https://gateway.example', 'https://gateway.example./dashboard'],
    ['https://gateway.example', 'https://GATEWAY.example.:443/x'],
    ['https://gateway.example', 'https://gateway。example/x'],
    ['https://gateway.example:8443', 'https://gateway.example.:8443/x'],
    ['http://127.0.0.1:8402', 'http://a.localhost:8402/x'],
    ['http://127.0.0.1:8402', 'http://[::ffff:127.0.0.1]:8402/x'],
    ['http://127.0.0.1:8402', 'http://0.0.0.0:8402/x'],
    ['http://localhost:8402', 'http://[::]:8402/x'],
  ])('at %s its own page %s', (issuer, uri) => {
    expect(isRedirect(uri, issuer)).toBe(false);
  });

  test('but not pages of others that look like its own', () => {
    const issuer = 'https://gateway.example';
    for (const uri of ['https://gateway.example:8443/x', 'https://sub.gateway.example/x', 'http://127.0.0.1:8402/x'])
      expect(isRedirect(uri, issuer), uri).toBe(true);
    expect(isRedirect('http://127.0.0.1:8403/x', 'http://localhost:8402')).toBe(true);
    expect(isRedirect('http://[::1:2]:8402/x', 'http://localhost:8402')).toBe(true);
  });
});

/** Links of programs, with the scheme that the page shows. */
const LINKS: Readonly<Record<string, string>> = {
  'cursor://anysphere.cursor-mcp/callback': 'cursor:',
  'com.example.app:/callback': 'com.example.app:',
};

/** Addresses, and the host that the page shows; null for the person's own computer. */
const SHOWN: Readonly<Record<string, string | null>> = {
  'https://evil.example/callback': 'evil.example',
  'https://evil.example:8443/': 'evil.example:8443',
  'https://evil.example\\@claude.ai/': 'evil.example',
  'https:evil.example/claude.ai': 'evil.example',
  'https://claude.ai%2eevil.example/': 'claude.ai.evil.example',
  'https://claude.ai.:444/': 'claude.ai.:444',
  // A Cyrillic letter.
  'https://\u0441laude.ai/callback': 'xn--laude-0ye.ai',
  'https://claude。evil.example/': 'claude.evil.example',
  'http://[::1]/callback': null,
  'http://127.1/callback': null,
  'cursor://anysphere.cursor-mcp/callback': null,
  'com.example.app:/callback': null,
};

describe('the page names the host to which the browser goes', () => {
  test.each(Object.entries(SHOWN))('%j', async (uri, host) => {
    const registered = await registerRaw(spine.origin, { redirect_uris: [uri] });
    const page = await person.open(registered.authorizeUrl({ redirect_uri: uri }));
    const { data } = (await (await person.look(page)).json()) as {
      readonly data: { readonly sends_to: string | null; readonly link: string | null };
    };
    expect([data.sends_to, data.link]).toEqual([host, LINKS[uri] ?? null]);
    const answer = await person.refuse(page);
    if (host !== null) expect([answer.protocol, answer.host]).toEqual(['https:', host]);
    else expect(answer.protocol).not.toBe('https:');
  });
});

describe('addresses that are not the registered one', () => {
  test.each([
    'http://127.0.0.1:7878@evil.example/callback',
    'http://thief@127.0.0.1:7878/callback',
    'http://127.0.0.1:7878\\@evil.example/callback',
    'http://127.0.0.1:99999/callback',
    `${RAW_CALLBACK}#`,
    `${RAW_CALLBACK}#x`,
    `${RAW_CALLBACK}/`,
    `${RAW_CALLBACK}\n`,
    ` ${RAW_CALLBACK}`,
    'http://127.0.0.1.:7878/callback',
    'http://127.0.0.1:7878/./callback',
    'http://127.0.0.1:7878/%63allback',
    'http://127.0.0.1:7878/Callback',
    'HTTP://127.0.0.1:7878/callback',
    'http://127.1:7878/callback',
    'http://[::1]:7878/callback',
    'https://127.0.0.1:7878/callback',
    '//127.0.0.1:7878/callback',
  ])('%j', async (uri) => {
    const response = await fetch(client.authorizeUrl({ redirect_uri: uri }), { redirect: 'manual' });
    expect([response.status, response.headers.get('location')]).toEqual([400, null]);
  });

  test('a second one beside it', async () => {
    const evil = `&redirect_uri=${encodeURIComponent('https://evil.example/')}`;
    const answer = await person.open(client.authorizeUrl() + evil);
    expect(answer.origin + answer.pathname).toBe(RAW_CALLBACK);
    expect(answer.searchParams.get('error')).toBe('invalid_request');
  });
});

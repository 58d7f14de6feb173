import { expect, test } from 'vitest';
import { MODEL, UNHURRIED } from '../../support/spine.ts';
import { spineOfFile } from '../../support/of-file.ts';

// The documents and files of the web pages as any HTTP client gets them.

const spine = spineOfFile(() => ({ toml: UNHURRIED, env: { TOLLGATE_PUBLIC_URL: 'https://gateway.example' } }));

const get = (path: string, headers: Record<string, string> = {}) => fetch(spine.origin + path, { headers });

test('a page has its title, a strict policy and every other header that protects it', async () => {
  const page = await get('/marketplace');
  expect(page.status).toBe(200);
  expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
  expect(await page.text()).toContain('<title>Marketplace · tollgate</title>');
  const policy = page.headers.get('content-security-policy')!;
  for (const rule of [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ])
    expect(policy).toContain(rule);
  expect(policy).not.toContain('unsafe');
  expect(Object.fromEntries(page.headers)).toMatchObject({
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'same-origin',
    'cross-origin-opener-policy': 'same-origin-allow-popups',
    'cross-origin-resource-policy': 'same-origin',
    'permissions-policy': 'camera=(), microphone=(), geolocation=(), payment=()',
    'strict-transport-security': 'max-age=31536000',
    'cache-control': 'no-cache',
  });
});

test('a page that has not changed is not sent again', async () => {
  const etag = (await get('/providers')).headers.get('etag')!;
  expect((await get('/providers', { 'if-none-match': etag })).status).toBe(304);
  // As a proxy that packs the page on the way names it.
  expect((await get('/providers', { 'if-none-match': `W/${etag}` })).status).toBe(304);
  expect((await get('/providers', { 'if-none-match': '"another"' })).status).toBe(200);
});

test('the document names the scripts of its page, so that they are loaded with the first ones', async () => {
  const scriptsIn = async (path: string) =>
    [...(await (await get(path)).text()).matchAll(/rel="modulepreload"[^>]* href="([^"]+)"/g)].map(([, file]) => file!);
  const [marketplace, providers] = [await scriptsIn('/marketplace'), await scriptsIn('/providers')];
  const own = marketplace.filter((file) => !providers.includes(file));
  expect(own.length).toBeGreaterThan(0);
  for (const file of own) expect((await get(file)).status).toBe(200);
});

test('the document begins with facts about the gateway', async () => {
  const text = await (await get('/marketplace')).text();
  expect(JSON.parse(/id="boot">([^<]*)</.exec(text)![1]!)).toMatchObject({
    base_url: 'https://gateway.example',
    mode: 'production',
  });
});

test('a page of a service has its name for previews of links; one that is not there is 404, as a page', async () => {
  const page = await get(`/models/${MODEL}`);
  expect(page.status).toBe(200);
  expect(await page.text()).toMatch(/<title>[^<]*Model · tollgate<\/title>/);
  const unknown = await get('/models/no/such');
  expect(unknown.status).toBe(404);
  expect(unknown.headers.get('content-type')).toContain('text/html');
});

test('the document of a service has the service in it, and names what else its page asks for', async () => {
  const path = `/api/v1/services/model/${MODEL}`;
  const text = await (await get(`/models/${MODEL}`)).text();
  const { answers, early } = JSON.parse(/id="boot">([^<]*)</.exec(text)![1]!) as Record<string, unknown>;
  expect(answers).toEqual({ [path]: await (await get(path)).json() });
  expect(early).toEqual([`/api/v1/analytics/service/model/${MODEL}`]);
  expect(text.indexOf('as="style"')).toBeLessThan(text.indexOf('<script'));
  // It would wait for them.
  expect(text.indexOf('/early-')).toBeLessThan(text.indexOf('rel="stylesheet"'));
});

test('files are kept for ever, and packed', async () => {
  const document = await (await get('/marketplace')).text();
  const path = /src="(\/assets\/index-[^"]+\.js)"/.exec(document)![1]!;
  const file = await get(path);
  expect(file.status).toBe(200);
  expect(file.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
  expect(file.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
  // From the first answer on: the build packed it.
  for (const encoding of ['br', 'gzip'])
    expect((await get(path, { 'accept-encoding': encoding })).headers.get('content-encoding')).toBe(encoding);
  const plain = await get(path, { 'accept-encoding': 'identity' });
  expect(plain.headers.get('content-encoding')).toBeNull();
  expect(await plain.text()).toBe(await file.text());
});

test('HEAD is GET without its body', async () => {
  const [page, head] = [await get('/marketplace'), await fetch(`${spine.origin}/marketplace`, { method: 'HEAD' })];
  expect(head.status).toBe(200);
  expect(head.headers.get('etag')).toBe(page.headers.get('etag'));
  expect(await head.text()).toBe('');
});

test.each([
  '/marketplaces',
  '/dashboard/nowhere/at-all',
  '/api/v1/marketplace',
  '/assets/../package.json',
  '/assets/no.js',
])('%s is 404 in JSON: programs see no page', async (path) => {
  const answer = await get(path);
  expect(answer.status).toBe(404);
  expect(await answer.json()).toMatchObject({ error: { type: 'not_found' } });
});

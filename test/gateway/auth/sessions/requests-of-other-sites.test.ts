import { beforeAll, describe, expect, test } from 'vitest';
import { openBrowser, type Browser } from './browser.ts';
import { spineOfFile } from '../../../support/of-file.ts';

// A browser sends its cookie along whatever page asks: what tells a page of ours from one of a stranger.

let browser: Browser;
const spine = spineOfFile();
beforeAll(async () => {
  browser = openBrowser(spine.origin);
  await browser.ask('POST', '/api/v1/auth/session', { api_key: spine.key });
});

const NONE = { 'sec-fetch-site': undefined, 'x-tollgate-web': undefined };

describe('reading', () => {
  const cases: readonly [string, Record<string, string | undefined>, number][] = [
    ['a page of the gateway', {}, 200],
    ['a link of a page of the gateway, such as a download', { 'x-tollgate-web': undefined }, 200],
    ['a page of another site', { 'sec-fetch-site': 'cross-site' }, 403],
    ['a page of a neighbouring host', { 'sec-fetch-site': 'same-site' }, 403],
    ['an address that was typed', { 'sec-fetch-site': 'none' }, 403],
    ['no sign of a page', NONE, 403],
    ['an old browser with our header', { 'sec-fetch-site': undefined }, 200],
    [
      'an old browser with our header and another origin',
      { 'sec-fetch-site': undefined, origin: 'https://evil.example' },
      403,
    ],
    ['an old browser with our header and the origin null', { 'sec-fetch-site': undefined, origin: 'null' }, 403],
    ['an old browser with another origin', { ...NONE, origin: 'https://evil.example' }, 403],
    ['an old browser with the origin null', { ...NONE, origin: 'null' }, 403],
  ];
  test.each(cases)('%s', async (_who, headers, status) => {
    expect((await browser.ask('GET', '/api/v1/keys', undefined, headers)).status).toBe(status);
  });
  test('an old browser with our own origin', async () => {
    expect((await browser.ask('GET', '/api/v1/keys', undefined, { ...NONE, origin: spine.origin })).status).toBe(200);
  });
});

describe('changing', () => {
  const cases: readonly [string, Record<string, string | undefined>, number][] = [
    ['a page of the gateway', {}, 200],
    ['a script of another site', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }, 403],
    ['a form of another site', { 'sec-fetch-site': 'cross-site', 'x-tollgate-web': undefined }, 403],
    ['a form without our header', { 'x-tollgate-web': undefined }, 403],
    ['our header with another value', { 'x-tollgate-web': '0' }, 403],
    ['no sign of a page', NONE, 403],
  ];
  test.each(cases)('%s', async (_who, headers, status) => {
    const { body } = await browser.ask('GET', '/api/v1/auth/session');
    const changed = await browser.ask('PATCH', `/api/v1/keys/${body.key}`, { label: 'mine' }, headers);
    expect(changed.status).toBe(status);
    if (status === 403) expect(changed.body.error?.message).toContain('x-tollgate-web: 1');
  });
  test('our own origin alone is not enough', async () => {
    const { body } = await browser.ask('GET', '/api/v1/auth/session');
    const path = `/api/v1/keys/${body.key}`;
    expect((await browser.ask('PATCH', path, { label: 'x' }, { ...NONE, origin: spine.origin })).status).toBe(403);
  });
});

test.each([
  ['a script of another site', { 'sec-fetch-site': 'cross-site' }],
  ['a form', { 'x-tollgate-web': undefined }],
  ['a script of another site in an old browser', { 'sec-fetch-site': undefined, origin: 'https://evil.example' }],
])('%s cannot sign a visitor in as somebody else', async (_who, headers) => {
  const visitor = openBrowser(spine.origin);
  const { status } = await visitor.ask('POST', '/api/v1/auth/session', { api_key: spine.key }, headers);
  expect([status, visitor.cookie]).toEqual([403, null]);
});

test('a form of plain text is not read as a sign-in', async () => {
  const visitor = openBrowser(spine.origin);
  const headers = { 'content-type': 'text/plain' };
  expect((await visitor.ask('POST', '/api/v1/auth/session', { api_key: spine.key }, headers)).status).not.toBe(200);
  expect(visitor.cookie).toBeNull();
});

test('pages of other origins are given neither cookies nor leave to send our header', async () => {
  const headers = {
    origin: 'https://evil.example',
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'x-tollgate-web',
  };
  const answer = await browser.ask('OPTIONS', '/api/v1/auth/session', undefined, headers);
  expect(answer.headers['access-control-allow-origin']).toBeUndefined();
  expect(answer.headers['access-control-allow-credentials']).toBeUndefined();
});

test('public pages are there for everybody, whatever cookie comes with them', async () => {
  for (const site of ['cross-site', 'none'])
    expect((await browser.ask('GET', '/api/v1/models', undefined, { 'sec-fetch-site': site })).status).toBe(200);
});

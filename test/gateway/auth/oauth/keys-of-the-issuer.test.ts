import { describe, expect, it } from 'vitest';
import { jwksUrlOf } from '../../../../src/gateway/auth/oauth/issuer-keys.ts';
import { issuerKey, jwkOf, startIssuer } from './issuer.ts';
import { openTokens } from './token-world.ts';

const IDP = 'https://idp.example';
const METADATA = '/.well-known/oauth-authorization-server';
const MINUTE_MS = 60_000;
const unavailable = { code: 'service_unavailable', retryAfterS: 5 };
const unknownKey = { code: 'unauthorized', message: expect.stringContaining('a key that its issuer does not have') };
const wait = { timeout: 60_000, interval: 5 };

describe('the keys of the issuer', () => {
  it('are not asked for before a token comes, and once for many tokens', async () => {
    const { issuer, enter, token } = await openTokens();
    expect(issuer.asked).toEqual([]);
    await Promise.all(Array.from({ length: 20 }, (_, n) => enter(token({ n }))));
    expect(issuer.asked).toEqual([METADATA, '/keys']);
  });

  it('are asked for where the operator says, without any metadata', async () => {
    const issuer = await startIssuer({ wellKnown: '/nowhere' });
    const { enter, token } = await openTokens({ issuer, oauth: { jwksUrl: `${issuer.url}/keys` } });
    await enter(token());
    expect(issuer.asked).toEqual(['/keys']);
  });

  it.each([
    ['', METADATA],
    ['', '/.well-known/openid-configuration'],
    ['/realms/main', `${METADATA}/realms/main`],
    ['/realms/main', '/realms/main/.well-known/openid-configuration'],
    ['/realms/main', '/.well-known/openid-configuration/realms/main'],
    ['/tenant/', `${METADATA}/tenant`],
  ])('of an issuer with the path "%s" are found by %s', async (path, wellKnown) => {
    const issuer = await startIssuer({ path, wellKnown });
    const { enter, token } = await openTokens({ issuer });
    await expect(enter(token())).resolves.toBeDefined();
  });

  it('are not taken from metadata of another issuer', async () => {
    const issuer = await startIssuer({ metadata: { issuer: 'http://127.0.0.1:9' } });
    const { enter, token, failures } = await openTokens({ issuer });
    await expect(enter(token())).rejects.toMatchObject(unavailable);
    expect(issuer.asked).not.toContain('/keys');
    expect(String(failures[0])).toContain(`${issuer.url}${METADATA}: names another issuer`);
  });

  it.each([
    [{ issuer: `${IDP}/` }, 'another issuer'],
    [{ issuer: undefined }, 'another issuer'],
    [{ issuer: [IDP] }, 'another issuer'],
    [{ jwks_uri: undefined }, 'no jwks_uri'],
    [{ jwks_uri: 7 }, 'no jwks_uri'],
    [{ jwks_uri: '/keys' }, 'no jwks_uri'],
    [{ jwks_uri: 'http://idp.example/keys' }, 'no jwks_uri with https'],
    [{ jwks_uri: 'file:///etc/keys' }, 'no jwks_uri with https'],
    [{ jwks_uri: 'data:application/json,{}' }, 'no jwks_uri with https'],
    [{ jwks_uri: 'https://user:password@idp.example/keys' }, 'no jwks_uri'],
    [{ jwks_uri: 'http://127.0.0.1:9/keys' }, 'leads to this machine'],
    [{ jwks_uri: 'https://localhost/keys' }, 'leads to this machine'],
    [{ jwks_uri: 'https://[::1]/keys' }, 'leads to this machine'],
  ])('are not where metadata with %j says', (changes, why) => {
    const metadata = { issuer: IDP, jwks_uri: 'https://keys.example/set?id=1' };
    expect(jwksUrlOf(metadata, IDP)).toBe(metadata.jwks_uri);
    expect(() => jwksUrlOf({ ...metadata, ...changes }, IDP)).toThrow(why);
    for (const none of [null, undefined, 1, 'x', []]) expect(() => jwksUrlOf(none, IDP)).toThrow('another issuer');
  });

  it('may change: a new one is found by its first token, and a withdrawn one ends', async () => {
    const { issuer, enter, token, clock } = await openTokens();
    await enter(token());
    const second = issuerKey('second');
    issuer.keys.splice(0, 1, jwkOf(second));
    clock.now += MINUTE_MS;
    await expect(enter(token({}, {}, second))).resolves.toBeDefined();
    await expect(enter(token({ n: 2 }))).rejects.toMatchObject(unknownKey);
  });

  it('are asked for once a minute, however many tokens name keys that do not exist', async () => {
    const { issuer, enter, token, clock } = await openTokens();
    await enter(token());
    const asked = () => issuer.asked.filter((path) => path === '/keys').length;
    const stranger = issuerKey('stranger');
    for (let round = 0; round < 20; round += 1)
      await expect(enter(token({ round }, {}, stranger))).rejects.toMatchObject(unknownKey);
    expect(asked()).toBe(1);
    clock.now += MINUTE_MS;
    await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        expect(enter(token({ n, again: true }, { kid: `kid-${n}` }, stranger))).rejects.toMatchObject(unknownKey),
      ),
    );
    expect(asked()).toBe(2);
  });

  it('are refreshed after ten minutes, with nobody waiting for it', async () => {
    const { issuer, enter, token, clock, failures } = await openTokens();
    await enter(token());
    clock.now += 10 * MINUTE_MS;
    const held: (() => void)[] = [];
    issuer.answer = (_request, response) => held.push(() => response.end('{}'));
    const late = token({ exp: clock.now / 1_000 + 60 });
    await expect(enter(late)).resolves.toBeDefined();
    expect(failures).toEqual([]);
    await expect.poll(() => held.length, wait).toBe(1);
    issuer.answer = (_request, response) => response.writeHead(404).end();
    held[0]!();
    await expect.poll(() => failures.length, wait).toBe(1);
  });

  it('stand for an hour while the issuer is away, and are back when it is', async () => {
    const { issuer, enter, token, clock, failures } = await openTokens();
    await enter(token());
    issuer.answer = (_request, response) => response.destroy();
    clock.now += 60 * MINUTE_MS - 1;
    const later = (n: number) => token({ n, exp: clock.now / 1_000 + 60 });
    await expect(enter(later(1))).resolves.toBeDefined();
    await expect.poll(() => failures.length, wait).toBe(1);
    clock.now += MINUTE_MS;
    await expect(enter(later(2))).rejects.toMatchObject(unavailable);
    issuer.answer = null;
    // Not asked at every token while it is away.
    await expect(enter(later(3))).rejects.toMatchObject(unavailable);
    clock.now += 5_000;
    await expect(enter(later(4))).resolves.toBeDefined();
  });

  it('of two without a key id in the token are not guessed among', async () => {
    const { issuer, enter, token } = await openTokens();
    issuer.keys.push(jwkOf(issuerKey('second')));
    await expect(enter(token({}, { kid: undefined }))).rejects.toMatchObject({ code: 'unauthorized' });
  });

  it.each([
    ['a private key', () => ({ ...issuerKey('first').privateKey.export({ format: 'jwk' }), kid: 'first' })],
    ['a secret', () => ({ kty: 'oct', k: Buffer.from('secret').toString('base64url'), kid: 'first' })],
    ['a key for encryption', () => ({ ...jwkOf(issuerKey('first')), use: 'enc' })],
    ['half a key', () => ({ kty: 'OKP', crv: 'Ed25519', kid: 'first' })],
    [
      'a short RSA key',
      () => ({ kty: 'RSA', n: Buffer.alloc(64, 255).toString('base64url'), e: 'AQAB', kid: 'first', alg: 'RS256' }),
    ],
  ])('that are %s open nothing', async (_what, jwk) => {
    const { issuer, enter, token } = await openTokens();
    issuer.keys.splice(0, 1, jwk());
    for (const alg of ['EdDSA', 'RS256'])
      await expect(enter(token({}, { alg }))).rejects.toMatchObject({ code: 'unauthorized' });
  });
});

describe('an issuer that misbehaves', () => {
  it.each<readonly [string, string | Buffer]>([
    ['with something that is not JSON', '<html>'],
    ['with nothing', ''],
    ['with null', 'null'],
    ['with a list', '[]'],
    ['with keys that are no list', '{"keys":{}}'],
    ['with keys that are no objects', '{"keys":[1]}'],
    ['with too many keys', JSON.stringify({ keys: Array.from({ length: 101 }, () => ({ kty: 'OKP' })) })],
    ['with more than 256 KiB', `{"keys":[],"padding":"${'x'.repeat(256 * 1024)}"}`],
  ])('answers %s: tokens are answered with 503, and no attempt is counted', async (_what, body) => {
    const issuer = await startIssuer();
    const { enter, token, failures, clock } = await openTokens({
      issuer,
      failuresPerMinute: 1,
      oauth: { jwksUrl: `${issuer.url}/keys` },
    });
    issuer.answer = (_request, response) => response.end(body);
    await expect(enter(token())).rejects.toMatchObject({ code: 'service_unavailable' });
    clock.now += 5_000;
    await expect(enter(token())).rejects.toMatchObject({ code: 'service_unavailable' });
    expect(failures).toHaveLength(2);
  });

  it('answers with its keys and another status than 200: they are not taken', async () => {
    const { issuer, enter, token, failures } = await openTokens();
    issuer.answer = (request, response) => {
      const metadata = { issuer: issuer.url, jwks_uri: `${issuer.url}/keys` };
      response
        .writeHead(request.url === '/keys' ? 203 : 200)
        .end(JSON.stringify(request.url === '/keys' ? { keys: issuer.keys } : metadata));
    };
    await expect(enter(token())).rejects.toMatchObject(unavailable);
    expect(String(failures[0])).toContain('answers 203');
  });

  it('sends us elsewhere: we do not go', async () => {
    const other = await startIssuer();
    const { issuer, enter, token, failures } = await openTokens();
    issuer.answer = (_request, response) => response.writeHead(302, { location: `${other.url}/keys` }).end();
    await expect(enter(token())).rejects.toMatchObject(unavailable);
    expect([other.asked, failures.length]).toEqual([[], 1]);
  });

  it('never ends its answer: the wait has an end, and so has what is read', async () => {
    const { issuer, enter, token, failures } = await openTokens({ timeoutMs: 200 });
    let closed = 0;
    issuer.answer = (_request, response) => {
      response.on('close', () => (closed += 1));
      response.writeHead(200).write('{');
    };
    await expect(enter(token())).rejects.toMatchObject(unavailable);
    await expect.poll(() => closed, wait).toBe(1);
    expect(String(failures[0])).toContain('timeout');
  });

  it('pours without end: reading stops', async () => {
    const { issuer, enter, token, failures } = await openTokens();
    let closed = 0;
    issuer.answer = (_request, response) => {
      const pour = () => {
        while (!response.destroyed && response.write('x'.repeat(65_536)));
      };
      response.on('close', () => (closed += 1)).on('drain', pour);
      pour();
    };
    await expect(enter(token())).rejects.toMatchObject(unavailable);
    expect(String(failures[0])).toContain('more than 262144 bytes');
    await expect.poll(() => closed, wait).toBeGreaterThan(0);
  });

  it('holds up those with its tokens alone, all for the one wait', async () => {
    const { issuer, enter, token } = await openTokens();
    const held: (() => void)[] = [];
    issuer.answer = (_request, response) => held.push(() => response.destroy());
    const all = Promise.allSettled(Array.from({ length: 30 }, (_, n) => enter(token({ n }))));
    await expect.poll(() => held.length, wait).toBe(1);
    issuer.answer = (_request, response) => response.destroy();
    held[0]!();
    expect((await all).map(({ status }) => status)).toEqual(Array.from({ length: 30 }, () => 'rejected'));
    expect(issuer.asked).toEqual([METADATA, '/.well-known/openid-configuration']);
  });
});

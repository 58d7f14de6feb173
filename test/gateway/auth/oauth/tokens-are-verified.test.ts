import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { GatewayError } from '#errors';
import { issuerKey, jwkOf, mint, mintByPublicKey, signatureOf, type Algorithm, type Json } from './issuer.ts';
import { ADDRESS, openTokens, PUBLIC_URL, START } from './token-world.ts';

const seconds = START / 1_000;
const unauthorized = (why: string) => ({ code: 'unauthorized', message: expect.stringContaining(why) });

describe('a token', () => {
  it.each<Algorithm>(['RS256', 'PS256', 'ES256', 'EdDSA'])('signed with %s is its subject’s', async (algorithm) => {
    const { enter, issuer, token } = await openTokens();
    const key = issuerKey('second', algorithm);
    issuer.keys.push(jwkOf(key));
    const { account, ...rest } = await enter(token({}, {}, key));
    expect(account).toMatch(/^oauth:127_0_0_1_[0-9a-f]{12}:alice$/);
    expect(rest).toEqual({ key: null, wallet: null });
  });

  it.each([undefined, 'JWT', 'jwt', 'at+jwt', 'application/at+jwt', 'AT+JWT'])(
    'of the type %s is taken',
    async (typ) => {
      const { enter, token } = await openTokens();
      await expect(enter(token({}, { typ }))).resolves.toBeDefined();
    },
  );

  it('without a key id is taken while the issuer has one key', async () => {
    const { enter, token, issuer } = await openTokens();
    await expect(enter(token({}, { kid: undefined }))).resolves.toBeDefined();
    expect(issuer.asked).toEqual(['/.well-known/oauth-authorization-server', '/keys']);
  });

  const wrong: readonly (readonly [what: string, claims: Json, why: string])[] = [
    ['for another service', { aud: 'https://other.example/mcp' }, 'not for this gateway'],
    ['for several others', { aud: ['https://other.example/mcp', 'account'] }, 'not for this gateway'],
    ['for nobody', { aud: undefined }, '"aud"'],
    ['for an audience that is no text', { aud: { [PUBLIC_URL]: 1 } }, 'not for this gateway'],
    ['of another issuer', { iss: 'https://evil.example' }, 'is not one of'],
    ['of an issuer with one slash more', { iss: 'slash' }, 'is not one of'],
    ['of no issuer', { iss: undefined }, 'is not one of'],
    ['of a list of issuers', { iss: 'list' }, 'is not one of'],
    ['that has expired', { exp: seconds - 31 }, 'has expired'],
    ['without an end', { exp: undefined }, '"exp"'],
    ['whose end is a text', { exp: `${seconds + 600}` }, '"exp"'],
    ['that is not valid yet', { nbf: seconds + 31 }, 'not valid yet'],
    ['whose begin is a text', { nbf: 'now' }, '"nbf"'],
    ['without a subject', { sub: undefined }, '"sub"'],
    ['with an empty subject', { sub: '' }, '"sub"'],
    ['whose subject is a number', { sub: 7 }, '"sub"'],
    ['whose subject is half a character', { sub: '\ud800' }, '"sub"'],
    ['that is bound to a key', { cnf: { jkt: 'x' } }, 'bound to a key'],
  ];
  it.each(wrong)('%s is refused', async (_what, changes, why) => {
    const { enter, token, issuer, tokens } = await openTokens();
    const iss =
      changes['iss'] === 'slash' ? { iss: `${issuer.url}/` } : changes['iss'] === 'list' ? { iss: [issuer.url] } : {};
    const text = token({ ...changes, ...iss });
    await expect(enter(text)).rejects.toMatchObject(unauthorized(why));
    expect(tokens.known(text, '/mcp')).toBeNull();
  });

  it('is good for as long as it says, with the skew on both sides', async () => {
    const { enter, token, clock } = await openTokens();
    const text = token({ nbf: seconds + 30, exp: seconds + 90 });
    await enter(text);
    clock.now = START + 119_999;
    await enter(text);
    clock.now = START + 120_000;
    await expect(enter(text)).rejects.toMatchObject(unauthorized('has expired'));
  });

  it('is remembered for a minute, and not beyond its end', async () => {
    const { enter, token, tokens, clock } = await openTokens();
    const [long, short] = [token(), token({ exp: seconds + 10 })];
    const caller = await enter(long);
    await enter(short);
    clock.now = START + 39_999;
    expect([tokens.known(long, '/mcp'), tokens.known(short, '/mcp') !== null]).toEqual([caller, true]);
    clock.now = START + 40_000;
    expect(tokens.known(short, '/mcp')).toBeNull();
    clock.now = START + 60_001;
    expect(tokens.known(long, '/mcp')).toBeNull();
    clock.now = START - 1;
    await enter(long);
  });

  it('is verified once for many requests that bring it at once', async () => {
    const { token, tokens } = await openTokens({ failuresPerMinute: 1 });
    const text = token();
    expect(
      new Set(await Promise.all(Array.from({ length: 50 }, () => tokens.verify(text, '/mcp', ADDRESS)!))).size,
    ).toBe(1);
  });
});

describe('a forged token is refused', () => {
  it.each(['none', 'None', 'NONE', 'HS256', 'RS384', 'RSA1_5', 'EdDSA '])('with alg %j', async (alg) => {
    const { enter, token } = await openTokens();
    const [head, body, signature] = token({}, { alg }).split('.');
    for (const text of [`${head}.${body}.`, `${head}.${body}.${signature}`])
      await expect(enter(text)).rejects.toMatchObject(unauthorized('is not signed with one of'));
  });

  it.each(['', undefined, null, 1, ['EdDSA'], { toString: 1 }])('with %j as alg', async (alg) => {
    const { enter, token } = await openTokens();
    const error: unknown = await enter(token({}, { alg })).catch((reason: unknown) => reason);
    expect(error).toSatisfy(
      (one) => (one as Error).message === 'no token' || (one as GatewayError).code === 'unauthorized',
    );
  });

  it('with the public key as the secret of a MAC', async () => {
    const { enter, claims, issuer } = await openTokens();
    const key = issuerKey('rsa', 'RS256');
    issuer.keys.push(jwkOf(key));
    await expect(enter(mintByPublicKey(key, claims()))).rejects.toMatchObject(
      unauthorized('is not signed with one of RS256, PS256, ES256, EdDSA'),
    );
  });

  it('with a key of its own in the header', async () => {
    const { enter, claims } = await openTokens();
    const own = issuerKey('first');
    for (const header of [{ jwk: jwkOf(own) }, { jku: 'http://127.0.0.1:9/keys' }, { x5u: 'http://127.0.0.1:9/c' }])
      await expect(enter(mint(own, claims(), header))).rejects.toMatchObject(
        unauthorized('was not signed by its issuer'),
      );
  });

  it('with the algorithm of another kind of key', async () => {
    const { enter, claims, first } = await openTokens();
    await expect(enter(mint(first, claims(), { alg: 'RS256' }))).rejects.toMatchObject(
      unauthorized('names a key that its issuer does not have'),
    );
  });

  it.each([
    ['crit', { crit: ['exp'], exp: 1 }],
    ['an unencoded payload', { crit: ['b64'], b64: false }],
  ])('with %s', async (_what, header) => {
    const { enter, token } = await openTokens();
    await expect(enter(token({}, header))).rejects.toMatchObject({ code: 'unauthorized' });
  });

  it.each(['dpop+jwt', 'logout+jwt', 'secevent+jwt', '', 7, { toString: 1 }])('of the type %j', async (typ) => {
    const { enter, token } = await openTokens();
    const result = enter(token({}, { typ }));
    if (typ === '') await expect(result).resolves.toBeDefined();
    else await expect(result).rejects.toMatchObject(unauthorized('of another type'));
  });

  it.each([
    '../../keys/first',
    '/etc/passwd',
    'FIRST',
    'first\u0000',
    "' OR '1'='1",
    '__proto__',
    '',
    '0',
    'http://127.0.0.1:9/key',
  ])('with the key id %j, which leads nowhere', async (kid) => {
    const { enter, token, issuer } = await openTokens();
    await expect(enter(token({}, { kid }))).rejects.toMatchObject({ code: 'unauthorized' });
    expect(new Set(issuer.asked)).toEqual(new Set(['/.well-known/oauth-authorization-server', '/keys']));
  });

  it('with any character of it changed', async () => {
    const { enter, token, failures } = await openTokens();
    const text = token();
    await enter(text);
    await fc.assert(
      fc.asyncProperty(
        fc.nat(text.length - 1),
        fc.constantFrom('A', 'Q', 'g', 'w', '_', '-', '.', '=', 'x'),
        async (at, character) => {
          const changed = text.slice(0, at) + character + text.slice(at + 1);
          fc.pre(changed !== text);
          // The last digit of a part may hold bits that mean nothing; all the same, no other text is this token.
          const [, body = '', signature = ''] = changed.split('.');
          const same =
            Buffer.from(signature, 'base64url').equals(Buffer.from(text.split('.')[2]!, 'base64url')) &&
            body === text.split('.')[1];
          const error: unknown = await enter(changed).catch((reason: unknown) => reason);
          if (!same || !changed.startsWith(text.split('.')[0]!)) expect(error).toBeInstanceOf(Error);
        },
      ),
      { numRuns: 300 },
    );
    expect(failures).toEqual([]);
  });
});

describe('what is no token', () => {
  it.each([
    '',
    'siwx',
    'a.b.c',
    'a.b',
    '..',
    '....',
    'eyJhbGciOiJub25lIn0.e30',
    'eyJ.eyJ.x',
    `${'a'.repeat(9_000)}.e30.x`,
    'eyJhbGciOiJIUzI1NiJ9.W10.x',
  ])('%j is told from one, and costs no attempt', async (text) => {
    const { tokens, enter, token } = await openTokens({ failuresPerMinute: 1 });
    for (let round = 0; round < 3; round += 1) expect(tokens.verify(text, '/mcp', ADDRESS)).toBeNull();
    await enter(token());
  });

  it('is also a token of more than 8 KiB', async () => {
    const { tokens, token } = await openTokens();
    expect(tokens.verify(token({ padding: 'x'.repeat(6_200) }), '/mcp', ADDRESS)).toBeNull();
    await expect(tokens.verify(token({ padding: 'x'.repeat(5_500) }), '/mcp', ADDRESS)).resolves.toBeDefined();
  });

  it('survives anything', async () => {
    const { tokens } = await openTokens();
    const json = fc.json().map((text) => Buffer.from(text).toString('base64url'));
    await fc.assert(
      fc.asyncProperty(json, json, fc.string(), async (header, body, signature) => {
        const error: unknown = await tokens
          .verify(`${header}.${body}.${signature}`, '/mcp', ADDRESS)
          ?.catch((reason: unknown) => reason);
        if (error !== undefined) expect(error).toMatchObject({ code: 'unauthorized' });
      }),
    );
  });
});

describe('tokens that fail', () => {
  it('are counted once their signature was looked at, and then refused unseen', async () => {
    const { enter, token, claims } = await openTokens({ failuresPerMinute: 3 });
    const good = token();
    const other = issuerKey('first');
    for (let round = 0; round < 5; round += 1)
      await expect(enter(token({ iss: 'https://evil.example', n: round }))).rejects.toMatchObject({
        code: 'unauthorized',
      });
    for (let round = 0; round < 3; round += 1)
      await expect(enter(mint(other, claims({ n: round })))).rejects.toMatchObject({ code: 'unauthorized' });
    await expect(enter(mint(other, claims({ n: 3 })))).rejects.toMatchObject({ code: 'rate_limit_exceeded' });
    await expect(enter(good)).rejects.toMatchObject({ code: 'rate_limit_exceeded' });
    await expect(enter(good, '192.0.2.2')).resolves.toBeDefined();
    // Known good ones pass.
    await expect(enter(good)).resolves.toBeDefined();
  });
});

describe('the required scope', () => {
  it.each<readonly [Json, boolean]>([
    [{ scope: 'mcp:call' }, true],
    [{ scope: 'openid mcp:call' }, true],
    [{ scp: ['openid', 'mcp:call'] }, true],
    [{ scp: 'mcp:call' }, true],
    [{}, false],
    [{ scope: 'mcp:call2 mcp' }, false],
    [{ scope: 'openid', scp: 'mcp:call' }, false],
    [{ scope: { 'mcp:call': 1 } }, false],
    [{ scope: ['mcp', 7, null] }, false],
  ])('in %j: %s', async (changes, has) => {
    const { enter, token } = await openTokens({ oauth: { requiredScope: 'mcp:call' }, failuresPerMinute: 1 });
    const headers = { 'www-authenticate': 'Bearer error="insufficient_scope", scope="mcp:call"' };
    for (let round = 0; round < 2; round += 1) {
      if (has) await enter(token(changes));
      else await expect(enter(token(changes))).rejects.toMatchObject({ code: 'permission_denied', headers });
    }
  });
});

it('a signature is over the very bytes of the token', async () => {
  const { enter, first, claims } = await openTokens();
  const [header, body, signature] = mint(first, claims()).split('.');
  const longer = Buffer.from(JSON.stringify(claims({ sub: 'bob' }))).toString('base64url');
  await expect(enter(`${header}.${longer}.${signature}`)).rejects.toMatchObject(unauthorized('was changed'));
  await expect(
    enter(`${header}.${body}.${signatureOf(first, `${body}.${header}`).toString('base64url')}`),
  ).rejects.toMatchObject(unauthorized('was changed'));
});

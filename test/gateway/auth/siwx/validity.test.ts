import { describe, expect, it } from 'vitest';
import { DOMAIN, evmWallet, headerFor, iso, solanaWallet, START, type Fields } from './wallets.ts';
import { openSignIn } from './sign-in-world.ts';

const wallet = solanaWallet();
const HOUR = 3_600_000;
const MINUTE = 60_000;
const SKEW = 30_000;

/** What is said to a message with these changes; null when it is taken. */
async function answer(changes: Partial<Fields>, at = START): Promise<string | null> {
  const { clock, enter } = await openSignIn();
  clock.now = at;
  try {
    await enter(await headerFor(wallet, changes));
    return null;
  } catch (error) {
    expect(error).toMatchObject({ code: 'unauthorized', headers: { 'www-authenticate': 'SIWx, Bearer' } });
    return (error as Error).message;
  }
}

describe('how long a sign-in is valid', () => {
  it('is until its expiration, give or take the skew', async () => {
    const changes = { issuedAt: iso(START), expirationTime: iso(START + MINUTE) };
    expect(await answer(changes, START + MINUTE + SKEW)).toBeNull();
    expect(await answer(changes, START + MINUTE + SKEW + 1)).toContain('expired');
  });

  it('is an hour from its issue where it has no expiration', async () => {
    expect(await answer({ expirationTime: null }, START + HOUR + SKEW)).toBeNull();
    expect(await answer({ expirationTime: null }, START + HOUR + SKEW + 1)).toContain('expired');
  });

  it('begins with its issue, give or take the skew', async () => {
    expect(await answer({}, START - SKEW)).toBeNull();
    expect(await answer({}, START - SKEW - 1)).toContain('future');
  });

  it('begins with Not Before', async () => {
    const changes = { notBefore: iso(START + 5 * MINUTE) };
    expect(await answer(changes, START + 5 * MINUTE - SKEW)).toBeNull();
    expect(await answer(changes, START + 5 * MINUTE - SKEW - 1)).toContain('future');
    expect(await answer({ notBefore: iso(START + 10 * MINUTE) })).toContain('Not Before');
  });

  it('is an hour at most', async () => {
    expect(await answer({ expirationTime: iso(START + HOUR) })).toBeNull();
    expect(await answer({ expirationTime: iso(START + HOUR + 1) })).toContain('more than 3600 s');
    expect(await answer({ issuedAt: null, expirationTime: iso(START + HOUR) })).toBeNull();
    expect(await answer({ issuedAt: null, expirationTime: iso(START + HOUR + SKEW + 1) })).toContain('too long');
    expect(
      await answer({ issuedAt: null, notBefore: iso(START + 47 * HOUR), expirationTime: iso(START + 48 * HOUR) }),
    ).toContain('too long');
  });

  it('has an end', async () => {
    expect(await answer({ issuedAt: null, expirationTime: null })).toContain('neither Issued At nor Expiration Time');
    expect(await answer({ expirationTime: iso(START) })).toContain('not after');
    expect(await answer({ expirationTime: iso(START - 1) })).toContain('not after');
  });
});

describe('where a sign-in is valid', () => {
  it('is at a domain that is configured, whatever the path', async () => {
    for (const uri of [
      `https://${DOMAIN}`,
      `https://${DOMAIN}/`,
      `https://${DOMAIN}?x=1`,
      `https://${DOMAIN}#x`,
      `https://${DOMAIN}/any/path?x@y`,
    ]) {
      expect(await answer({ uri })).toBeNull();
    }
    expect(await answer({ domain: 'localhost:8402', uri: 'http://localhost:8402/' })).toBeNull();
    expect(await answer({ domain: 'localhost:8402', uri: 'https://localhost:8402/' })).toBeNull();
  });

  it.each([
    'evil.example',
    'gateway.example.evil.example',
    'sub.gateway.example',
    'xgateway.example',
    'Gateway.example',
    'GATEWAY.EXAMPLE',
    'gateway.example.',
    'gateway.example:443',
    'gateway.example:8402',
    'https://gateway.example',
    'user@gateway.example',
    'gateway.example@evil.example',
    'gateway.example/',
    'gateway%2Eexample',
    'xn--gatewy-3ve.example',
    'localhost',
    '127.0.0.1:8402',
  ])('is not at the domain %s', async (domain) => {
    expect(await answer({ domain })).toContain('domain');
  });

  it.each([
    'https://evil.example/',
    'https://sub.gateway.example/',
    'https://gateway.example.evil.example/',
    'https://gateway.example:443/',
    'https://gateway.example:8402/',
    'https://GATEWAY.example/',
    'https://gateway.example./',
    'https://user@gateway.example/',
    'https://user:word@gateway.example/',
    'https://gateway.example@evil.example/',
    'https://evil.example?gateway.example/',
    'https://evil.example#gateway.example/',
    'https:gateway.example/',
    'https:/gateway.example/',
    'https:///gateway.example/',
    'https://gateway%2Eexample/',
    'https://gateway.example%00.evil.example/',
    'HTTPS://gateway.example/',
    'ftp://gateway.example/',
    'javascript://gateway.example/',
    'did:key:z6Mk',
    'https://localhost:8402.evil.example/',
  ])('is not at the URI %s', async (uri) => {
    expect(await answer({ uri })).toContain('URI');
  });

  it('is there over either scheme: the path of the request, and who ends its encryption, are not in the message', async () => {
    expect(await answer({ uri: 'http://gateway.example/' })).toBeNull();
  });

  it('is nowhere while no domain is configured', async () => {
    const { enter } = await openSignIn({ domains: [] });
    await expect(enter(await headerFor(wallet))).rejects.toMatchObject({
      code: 'unauthorized',
      message: expect.stringContaining('No wallet can sign in at this gateway'),
    });
    await expect(enter('garbage')).rejects.toMatchObject({
      message: expect.stringContaining('No wallet can sign in at this gateway'),
    });
  });
});

it('names the account and the chain of who signed', async () => {
  const { enter } = await openSignIn();
  const evm = evmWallet();
  expect(await enter(await headerFor(wallet, { nonce: 'abcdefgh' }))).toEqual({
    account: wallet.account,
    key: null,
    wallet: { caip10: `solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp:${wallet.address}`, nonce: 'abcdefgh' },
  });
  expect(await enter(await headerFor(evm, { chainId: '84532' }))).toEqual({
    account: evm.account,
    key: null,
    wallet: { caip10: `eip155:84532:${evm.address.toLowerCase()}`, nonce: null },
  });
});

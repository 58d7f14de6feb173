import { hashMessage } from 'viem';
import { describe, expect, it } from 'vitest';
import { ACCEPTED, REFUSED, startChainNode, type ChainNode, type NodeAnswer } from './chain-node.ts';
import { openSignIn } from './sign-in-world.ts';
import { BASE, encode, evmWallet, fieldsFor, headerFor, textOf, type TestWallet } from './wallets.ts';

const CONTRACT = '0x00000000000000000000000000000000c0ffee00';
const CODE = '0x60006000';
const SIX492 = '6492'.repeat(16);
const wallet: TestWallet = { ...evmWallet(), address: CONTRACT };
const ACCOUNT = `${BASE}:${CONTRACT}`;

async function world(
  answer: NodeAnswer | ((method: string) => NodeAnswer),
  code: string | null = CODE,
  options: { chainTimeoutMs?: number } = {},
) {
  const node = await startChainNode({
    ...(code === null ? {} : { code }),
    answer: ({ method }) => (typeof answer === 'function' ? answer(method) : answer),
  });
  return { node, ...(await openSignIn({ chains: [{ network: BASE, rpcUrl: node.url }], ...options })) };
}

/** A header whose message names the contract and has this for a signature. */
function headerWith(signature: string, address = CONTRACT, statement = 'Sign in.'): string {
  return encode({ message: textOf(fieldsFor(wallet, { address, statement })), signature });
}

const methods = (node: ChainNode) => node.calls.map(({ method }) => method);
const refused = { code: 'unauthorized', headers: { 'www-authenticate': 'SIWx, Bearer' } };

describe('a contract wallet', () => {
  it('signs in with whatever its contract accepts, on the chain that it is on', async () => {
    const { node, enter } = await world(ACCEPTED);
    const signature = '0xc0ffeec0ffee';
    expect(await enter(headerWith(signature))).toEqual({
      account: ACCOUNT,
      key: null,
      wallet: { caip10: ACCOUNT, nonce: null },
    });
    expect(methods(node)).toEqual(['eth_getCode', 'eth_call']);
    const { data } = node.calls[1]!.params[0] as { data: string };
    expect(data).toContain(CONTRACT.slice(2));
    expect(data).toContain(hashMessage(textOf(fieldsFor(wallet))).slice(2));
    expect(data).toContain(signature.slice(2));
  });

  it('is asked of its chain once for as long as the header is valid', async () => {
    const { node, enter, signIn } = await world(ACCEPTED);
    const header = headerWith('0xc0ffee');
    await Promise.all(Array.from({ length: 20 }, () => enter(header)));
    expect(signIn.known(header)?.account).toBe(ACCOUNT);
    await enter(header);
    expect(node.calls).toHaveLength(2);
  });

  it('signs in through a node that asks for a password', async () => {
    const node = await startChainNode({ code: CODE, answer: () => ACCEPTED });
    const { enter } = await openSignIn({
      chains: [{ network: BASE, rpcUrl: node.url.replace('//', '//me:password@') }],
    });
    expect((await enter(headerWith('0xc0ffee'))).account).toBe(ACCOUNT);
  });

  it('signs in before it is deployed, by a signature that says how it will be', async () => {
    const { enter } = await world(ACCEPTED, '0x');
    expect((await enter(headerWith(`0xc0ffee${SIX492}`))).account).toBe(ACCOUNT);
  });

  it.each<[string, NodeAnswer]>([
    ['says no', REFUSED],
    ['says nothing', { result: '0x' }],
    ['says something else', { result: `0x${'f'.repeat(64)}` }],
    ['reverts', { error: { code: 3, message: 'execution reverted', data: '0x' } }],
    [
      'reverts in other words',
      { error: { code: -32603, message: 'VM Exception while processing transaction: reverted' } },
    ],
    ['runs out of gas', { error: { code: -32000, message: 'out of gas' } }],
    [
      'asks for a look-up off the chain',
      { error: { code: 3, message: 'execution reverted', data: `0x556f1830${'0'.repeat(64)}` } },
    ],
  ])('is refused when its contract %s', async (_what, answer) => {
    const { enter } = await world(answer);
    await expect(enter(headerWith('0xc0ffee'))).rejects.toMatchObject(refused);
  });

  it.each<[string, NodeAnswer | ((method: string) => NodeAnswer)]>([
    ['has an error of its own', { error: { code: -32603, message: 'Internal error' } }],
    ['limits its callers', { error: { code: -32005, message: 'limit exceeded' } }],
    ['fails', { status: 502 }],
    ['answers nonsense', { status: 200 }],
    ['is silent', 'silence'],
  ])('is told to come again, and not that it is wrong, when the node %s', async (_what, answer) => {
    const both = await world(answer, null, { chainTimeoutMs: 100 });
    await expect(both.enter(headerWith('0xc0ffee'))).rejects.toMatchObject({
      code: 'service_unavailable',
      retryAfterS: 2,
    });
    const call = await world(answer, CODE, { chainTimeoutMs: 100 });
    await expect(call.enter(headerWith('0xc0ffee'))).rejects.toMatchObject({ code: 'service_unavailable' });
  });

  it('is told to come again when there is no node, and is let in when it is back', async () => {
    const { node, signIn, enter } = await world(ACCEPTED);
    const header = headerWith('0xc0ffee');
    await node.stop();
    await expect(enter(header)).rejects.toMatchObject({ code: 'service_unavailable' });
    expect(signIn.known(header)).toBeNull();
  });

  it('is asked about so often by one client and no more, which keeps nobody else from signing in', async () => {
    const { clock, enter, node } = await world(REFUSED);
    const outcome = (index: number, address: string, client: string) =>
      enter(headerWith('0xc0ffee', address, `Try ${index}.`), client).catch(
        (error: { code: string; retryAfterS?: number }) => error.retryAfterS ?? error.code,
      );
    // One network of IPv6 is one client.
    for (let index = 0; index < 60; index += 1)
      expect(await outcome(index, CONTRACT, `2001:db8::${index}`)).toBe('unauthorized');
    expect(await outcome(60, CONTRACT, '2001:db8::60')).toBe(1);
    expect(node.calls).toHaveLength(120);
    expect(await outcome(61, CONTRACT, '192.0.2.98')).toBe('unauthorized');
    clock.now += 60_000;
    const address = (index: number) => `0x${index.toString(16).padStart(40, '1')}`;
    for (let index = 0; index < 60; index += 1)
      expect(await outcome(index, address(index), '192.0.2.99')).toBe('unauthorized');
    expect(await outcome(60, address(60), '192.0.2.99')).toBe(1);
    expect(await outcome(60, address(60), '192.0.2.98')).toBe('unauthorized');
  });

  it('is asked about by one client with as many checks at once as it leaves free', async () => {
    const { enter } = await world(REFUSED);
    const outcome = (index: number, client: string) =>
      enter(headerWith('0xc0ffee', CONTRACT, `Try ${index}.`), client).catch(({ code }: { code: string }) => code);
    const many = Array.from({ length: 12 }, (_, index) => outcome(index, '192.0.2.1'));
    const other = outcome(12, '192.0.2.2');
    expect((await Promise.all(many)).filter((code) => code === 'service_unavailable')).toHaveLength(4);
    expect(await other).toBe('unauthorized');
  });

  it('counts as failed for the address that it came from', async () => {
    const node = await startChainNode({ code: CODE, answer: () => REFUSED });
    const { enter } = await openSignIn({ chains: [{ network: BASE, rpcUrl: node.url }], failuresPerMinute: 1 });
    await expect(enter(headerWith('0xc0ffee'))).rejects.toMatchObject(refused);
    await expect(enter(headerWith('0xc0ffee00'))).rejects.toMatchObject({
      code: 'rate_limit_exceeded',
      retryAfterS: expect.any(Number),
    });
    expect(node.calls).toHaveLength(2);
  });
});

describe('an ordinary wallet', () => {
  const ordinary = evmWallet();

  it('needs no chain', async () => {
    const { node, enter } = await world(REFUSED);
    expect((await enter(await headerFor(ordinary))).account).toBe(ordinary.account);
    expect(node.calls).toHaveLength(0);
  });

  it('is not taken for a contract: without code its wrong signature is wrong', async () => {
    for (const code of ['0x', null]) {
      const { node, enter } = await world((method) => (method === 'eth_getCode' ? { result: null } : ACCEPTED), code);
      const message = textOf(fieldsFor(ordinary));
      const signature = await evmWallet('mallory').sign(message);
      await expect(enter(encode({ message, signature }))).rejects.toMatchObject(refused);
      expect(methods(node)).toEqual(['eth_getCode']);
    }
  });

  it('that has code as well is another account by its own key in no other encoding', async () => {
    const { node, enter } = await world(REFUSED, `0xef0100${'1'.repeat(40)}`);
    const message = textOf(fieldsFor(ordinary));
    const signature = await ordinary.sign(message);
    const s =
      0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n - BigInt(`0x${signature.slice(66, 130)}`);
    const high = `${signature.slice(0, 66)}${s.toString(16).padStart(64, '0')}${signature.endsWith('1b') ? '1c' : '1b'}`;
    await expect(enter(encode({ message, signature: high }))).rejects.toMatchObject(refused);
    expect(node.calls).toHaveLength(0);
    for (const same of [
      `${signature.slice(0, 130)}00${signature.slice(130)}`,
      `${signature.slice(0, 130)}0000${signature.slice(130)}`,
    ]) {
      await expect(enter(encode({ message, signature: same }))).rejects.toMatchObject(refused);
    }
  });

  it('on a chain that is not configured is refused with words about that', async () => {
    const { node, enter } = await world(ACCEPTED);
    const message = textOf(fieldsFor(wallet, { chainId: 'eip155:1' }));
    await expect(enter(encode({ message, signature: '0xc0ffee' }))).rejects.toMatchObject({
      ...refused,
      message: expect.stringContaining('eip155:1'),
    });
    expect(node.calls).toHaveLength(0);
  });
});

it('is refused without asking when its signature names the contract that is to answer', async () => {
  const { node, enter } = await world(ACCEPTED);
  await expect(enter(headerWith(`0xc0ffee${'8010'.repeat(16)}`))).rejects.toMatchObject(refused);
  expect(node.calls).toHaveLength(0);
});

it('is refused without asking when its signature is no hex', async () => {
  const { node, enter } = await world(ACCEPTED);
  for (const signature of ['0x', '0x1', 'c0ffe', '0xzz', 'x'.repeat(3_000)])
    await expect(enter(headerWith(signature))).rejects.toMatchObject(refused);
  expect(node.calls).toHaveLength(0);
});

import { afterAll, beforeAll, expect, test } from 'vitest';
import { createPaperChain, fromHeader } from '../../support/paper-chain.ts';
import { ask, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { request, type RpcReply } from './rpc-world.ts';

// The route behind this endpoint sees the host and the protocol that the route itself would see: those of a trusted
// proxy, and nobody else's. The gateway has no address in its configuration, so its answers have that of the request.

const FORWARDED = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'gateway.test' };
const PATH = '/api/v1/chat/completions';
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

/** The address of the paid resource in the payment terms of a stranger, from the route and from this endpoint. */
async function addresses(spine: Spine, headers: Record<string, string>) {
  const send = async (path: string, body: object) => {
    const response = await fetch(spine.origin + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
    return { terms: fromHeader(response.headers.get('payment-required')), body: await response.json() };
  };
  const door = await send(PATH, ask('hello'));
  const rpc = await send('/api/v1/rpc', request(1, 'chat/completions', ask('hello')));
  const urlOf = (terms: unknown) => (terms as { readonly resource: { readonly url: string } }).resource.url;
  return [urlOf(door.terms), urlOf(rpc.terms), urlOf((rpc.body as RpcReply).error!.data)];
}

test('behind a trusted proxy, addresses have its protocol and its host', async () => {
  const there = `https://gateway.test${PATH}`;
  expect(await addresses(behind, FORWARDED)).toEqual([there, there, there]);
  expect(await addresses(behind, { ...FORWARDED, 'x-forwarded-for': '203.0.113.7' })).toEqual([there, there, there]);
  const { 'x-forwarded-host': _, ...https } = FORWARDED;
  const same = `https${behind.origin.slice('http'.length)}${PATH}`;
  expect(await addresses(behind, https)).toEqual([same, same, same]);
});

test('what a stranger says about a proxy is not believed', async () => {
  const here = open.origin + PATH;
  expect(await addresses(open, { ...FORWARDED, 'x-forwarded-for': '203.0.113.7' })).toEqual([here, here, here]);
});

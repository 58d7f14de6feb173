import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sendRaw } from '../../support/raw-http.ts';
import { ask } from '../../support/spine.ts';
import { evmWallet, signInValue, solanaWallet } from '../../support/wallets.ts';
import { startWorld, type World } from './world.ts';

// Sign-ins that contradict each other or come in a way that parts of a chain of servers read differently.

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.stop());

const solana = solanaWallet();
const evm = evmWallet();
const one = await signInValue(solana);
const two = await signInValue(evm);
const wrong = await signInValue(solana, { domain: 'evil.example' });

/** The answer to a request with these lines in its head. */
const send = (lines: readonly string[], path = '/api/v1/session/balance') =>
  sendRaw(
    world.spine.origin,
    Buffer.from(
      `GET ${path} HTTP/1.1\r\nHost: tollgate.test\r\nConnection: close\r\n${lines.join('\r\n')}\r\n\r\n`,
      'latin1',
    ),
  );

describe('two sign-ins in one request are refused', () => {
  it.each([
    ['two headers', [`SIGN-IN-WITH-X: ${one}`, `SIGN-IN-WITH-X: ${two}`]],
    ['the same header twice', [`SIGN-IN-WITH-X: ${one}`, `SIGN-IN-WITH-X: ${one}`]],
    ['a right one and a wrong one', [`SIGN-IN-WITH-X: ${one}`, `SIGN-IN-WITH-X: ${wrong}`]],
    ['a wrong one and a right one', [`SIGN-IN-WITH-X: ${wrong}`, `SIGN-IN-WITH-X: ${one}`]],
    ['an empty one and a right one', ['SIGN-IN-WITH-X:', `SIGN-IN-WITH-X: ${one}`]],
    ['in another case', [`SIGN-IN-WITH-X: ${one}`, `sign-in-with-x: ${two}`]],
    ['under an alias', [`SIGN-IN-WITH-X: ${one}`, `X-SIWX: ${two}`]],
    ['under the other alias', [`SIGN-IN-WITH-X: ${one}`, `X-Sign-In-With-X: ${two}`]],
    ['under both aliases', [`X-SIWX: ${one}`, `X-Sign-In-With-X: ${two}`]],
    ['an empty alias', [`SIGN-IN-WITH-X: ${one}`, 'X-SIWX:']],
    ['an alias that is wrong', [`SIGN-IN-WITH-X: ${one}`, `X-SIWX: ${wrong}`]],
    ['with a comma', [`SIGN-IN-WITH-X: ${one}, ${two}`]],
    ['one folded into the next line', [`SIGN-IN-WITH-X: ${one.slice(0, 40)}`, ` ${one.slice(40)}`]],
  ])('%s', async (_name, lines) => {
    const { status, body } = await send(lines);
    // A folded line is for the HTTP parser to refuse.
    expect([400, 401]).toContain(status);
    if (status === 401) expect(JSON.parse(body)).toMatchObject({ error: { type: 'unauthorized' } });
    expect(await world.whoIs({ 'sign-in-with-x': one })).toBe(solana.accountId);
  });
});

describe('a sign-in that is refused is not replaced by another credential', () => {
  it.each([
    ['the key of an account', () => [`SIGN-IN-WITH-X: ${wrong}`, `Authorization: Bearer ${world.spine.key}`]],
    ['an x-api-key', () => [`SIGN-IN-WITH-X: ${wrong}`, `x-api-key: ${world.spine.key}`]],
    [
      'both',
      () => [`SIGN-IN-WITH-X: ${wrong}`, `Authorization: Bearer ${world.spine.key}`, `x-api-key: ${world.spine.key}`],
    ],
    ['a key beside an empty header', () => ['SIGN-IN-WITH-X:', `Authorization: Bearer ${world.spine.key}`]],
    ['a key beside a header of spaces', () => ['SIGN-IN-WITH-X:     ', `Authorization: Bearer ${world.spine.key}`]],
    ['a key beside an alias', () => ['X-SIWX: x', `Authorization: Bearer ${world.spine.key}`]],
    ['the admin key', () => [`SIGN-IN-WITH-X: ${wrong}`, `Authorization: Bearer ${world.spine.adminKey}`]],
  ])('%s', async (_name, lines) => {
    const { status, body } = await send(lines());
    expect(status).toBe(401);
    expect(JSON.parse(body)).toMatchObject({ error: { type: 'unauthorized', code: 401 } });
  });
});

describe('a sign-in is none anywhere else', () => {
  it.each([
    ['as a bearer token', [`Authorization: Bearer ${one}`]],
    ['as its own scheme', [`Authorization: SIWx ${one}`]],
    ['as an x-api-key', [`x-api-key: ${one}`]],
    ['as a cookie', [`Cookie: sign-in-with-x=${one}`]],
    ['with underscores in the name', [`SIGN_IN_WITH_X: ${one}`]],
    ['for a proxy', [`Proxy-Authorization: SIWx ${one}`]],
    ['with a space before the colon', [`SIGN-IN-WITH-X : ${one}`]],
    ['with NUL in the value', [`SIGN-IN-WITH-X: ${one}\0`]],
    ['with a carriage return in the value', [`SIGN-IN-WITH-X: ${one}\rX: y`]],
  ])('%s', async (_name, lines) => {
    expect([400, 401]).toContain((await send(lines)).status);
  });

  it('in the address', async () => {
    expect((await send([], `/api/v1/session/balance?sign-in-with-x=${encodeURIComponent(one)}`)).status).toBe(401);
  });
});

it('a header that no server takes is refused by its size', async () => {
  expect((await send([`SIGN-IN-WITH-X: ${'e'.repeat(8 * 1024 + 1)}`])).status).toBe(401);
  expect((await send([`SIGN-IN-WITH-X: ${'e'.repeat(100_000)}`])).status).toBe(431);
});

it('pays for no call', async () => {
  for (const value of [wrong, 'x', one.slice(0, -8)]) {
    const response = await fetch(`${world.spine.url}/chat/completions`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'sign-in-with-x': value,
        authorization: `Bearer ${world.spine.key}`,
      },
      body: JSON.stringify(ask('hello')),
    });
    expect(response.status).toBe(401);
    expect(await response.json()).toMatchObject({ error: { type: 'unauthorized' } });
  }
  expect(await world.spine.locks()).toEqual([]);
});

import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { escrowOf, treasuryOf } from '#billing';
import { localAccount } from '#accounts/names';
import { openBrowser, type TestBrowser, type Visitor } from '../../support/browser.ts';
import { ask, startSpine, type Spine } from '../../support/spine.ts';
import { registerRaw } from '../../gateway/authorization/support/raw-client.ts';
import { pageHolds } from './page-holds.ts';

// The page on which a person decides about expensive calls of programs, in a real browser.

let spine: Spine;
let browser: TestBrowser;
let visitor: Visitor;
let program: Server;
let token: string;
beforeAll(async () => {
  [spine, browser] = await Promise.all([startSpine({ mode: 'development' }), openBrowser()]);
  visitor = await browser.visit({ origin: spine.origin });
  const name = 'Nightly job”, which the owner knows “\u05e9\u05dc\u05d5\u05dd';
  program = createServer((_request, response) => response.end('Back in the program')).listen(0, '127.0.0.1');
  await once(program, 'listening');
  const uri = `http://127.0.0.1:${(program.address() as AddressInfo).port}/callback`;
  const client = await registerRaw(spine.origin, {
    client_name: name,
    redirect_uris: [uri],
    resource: `${spine.origin}/api/v1`,
  });
  const { page } = visitor;
  await spine.app.ledger.transfer({
    id: 'development-play-money',
    from: treasuryOf('dev'),
    to: escrowOf(localAccount('dev')),
    amount: 1_000_000n,
    memo: 'play money of the development account',
  });
  await page.goto(client.authorizeUrl({ redirect_uri: uri }));
  await page.getByText('Name, approvals, tags').click();
  await page.getByLabel('Ask a person above').fill('0.000001');
  await page.getByRole('button', { name: 'Allow' }).click();
  await page.waitForURL((url) => url.href.startsWith(uri));
  const answer = new URL(page.url());
  ({ access_token: token } = (await client.redeem(answer, { redirect_uri: uri })).body);
});
afterAll(async () => {
  await browser.close();
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
  program.closeAllConnections();
  program.close();
});

const call = (text: string) =>
  fetch(`${spine.url}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(ask(text)),
  });

test('a person sees who asks for what at which price, accepts one and refuses the other', async () => {
  const { page } = visitor;
  await page.goto('/dashboard/approvals');
  await page.getByRole('heading', { name: 'No call waits' }).waitFor();
  await pageHolds(visitor);

  const waiting = await call('hello first \u202e one');
  expect(waiting.status).toBe(403);
  const { approval } = (await waiting.json()) as { readonly approval: { readonly url: string } };
  expect((await call('hello second')).status).toBe(403);
  await page.goto(approval.url);
  // The link names one, and it comes first.
  const [first, second] = [page.locator('main li').first(), page.locator('main li').last()];
  await first.getByText('hello first \\u{202e} one').waitFor();
  await first.getByText('(a program on your machine)').waitFor();
  await first.locator('bdi').waitFor();
  await pageHolds(visitor);

  await first.getByRole('button', { name: 'Accept' }).click();
  await first.getByText('accepted', { exact: true }).waitFor();
  await second.getByRole('button', { name: 'Refuse' }).click();
  await second.getByText('refused', { exact: true }).waitFor();
  const answered = await call('hello first \u202e one');
  expect([answered.status, await answered.text()]).toEqual([200, expect.stringContaining('chat.completion')]);
  const refused = await call('hello second');
  expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining('approval_refused')]);
  await first.getByText('used', { exact: true }).waitFor();
  await pageHolds(visitor);
});

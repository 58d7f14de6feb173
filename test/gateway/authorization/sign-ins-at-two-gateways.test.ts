import { once } from 'node:events';
import { createServer, request as ask } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { freshDatabase } from '../../support/fresh-database.ts';
import { startSpine, type Spine } from '../../support/spine.ts';
import { startDocumentServer, type DocumentServer } from './support/document-server.ts';
import { createPerson } from './support/person.ts';
import { RAW_CALLBACK, registerRaw } from './support/raw-client.ts';

/* Two gateways on one database behind one address, in production: each request of a sign-in comes to the other one. */

let documents: DocumentServer;
let gateways: readonly [Spine, Spine];
let drop: () => Promise<void>;
let turn = 0;
let asked: string[] = [];
let ahead = 0;
const balancer = createServer((request, response) => {
  const gateway = gateways[(turn += 1) % 2]!;
  asked.push(gateway.origin);
  const passed = ask(gateway.origin + request.url!, { method: request.method!, headers: request.headers }, (answer) => {
    response.writeHead(answer.statusCode!, answer.headers);
    answer.pipe(response);
  });
  request.pipe(passed);
});
let origin: string;
beforeAll(async () => {
  balancer.listen(0, '127.0.0.1');
  await once(balancer, 'listening');
  origin = `http://127.0.0.1:${(balancer.address() as AddressInfo).port}`;
  documents = await startDocumentServer((path, own, response) => {
    const description = { client_id: own + path, client_name: 'Good', redirect_uris: [RAW_CALLBACK] };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(description));
  });
  const database = await freshDatabase(inject('postgresUrl'));
  drop = database.drop;
  const toml = `[server]\npublic_url = "${origin}"\n[authorization]\nenabled = true\n[limits]\nanonymous_requests_per_minute = 1000\n[webhooks]\nallow_private = true\n`;
  const options = { databaseUrl: database.url, toml, now: () => Date.now() + ahead };
  gateways = [await startSpine(options), await startSpine({ ...options, credit: '0' })];
});
afterAll(async () => {
  balancer.closeAllConnections();
  balancer.close();
  await Promise.all(gateways.map((gateway) => gateway.stop()));
  await drop();
  await documents.close();
});

const statusAt = async (base: string, token: string): Promise<number> =>
  (await fetch(`${base}/api/v1/key`, { headers: { authorization: `Bearer ${token}` } })).status;

test('every step of a sign-in works at the other gateway, and so do its tokens', async () => {
  asked = [];
  const person = createPerson(origin, gateways[0].key);
  const client = await registerRaw(origin, { resource: `${origin}/api/v1` });
  const tokens = await client.signIn(person);
  expect(new Set(asked).size).toBe(2);
  const { status, body } = await client.refresh(tokens.refresh_token!);
  expect(status).toBe(200);
  for (const { origin: own } of gateways)
    for (const token of [tokens.access_token, body.access_token]) expect(await statusAt(own, token)).toBe(200);
  ahead += 60_000;
  // The reuse is seen at whichever gateway it comes to, and ends the grant at both within a second.
  expect((await client.refresh(tokens.refresh_token!)).status).toBe(400);
  for (const { origin: own } of gateways)
    await expect.poll(() => statusAt(own, body.access_token), { timeout: 20_000 }).toBe(401);
  expect(await gateways[0].faults()).toEqual([]);
});

test('a gateway that has not seen the document of a program yet shows its page all the same', async () => {
  const person = createPerson(origin, gateways[0].key);
  const client = await registerRaw(origin, { id: `${documents.origin}/client`, resource: `${origin}/api/v1` });
  asked = [];
  expect(await client.signIn(person)).toMatchObject({ token_type: 'Bearer' });
  expect(new Set(asked).size).toBe(2);
  expect(documents.asked).toEqual(['/client', '/client']);
});

test('the own card of the gateway names it as the issuer', async () => {
  const card = await (
    await fetch(`${origin}/.well-known/agent-card.json`, { headers: { 'a2a-version': '1.0' } })
  ).json();
  const openIdConnectUrl = `${origin}/.well-known/openid-configuration`;
  expect(card).toMatchObject({
    securitySchemes: { openIdConnect: { openIdConnectSecurityScheme: { openIdConnectUrl } } },
  });
  expect(await (await fetch(openIdConnectUrl)).json()).toMatchObject({ issuer: origin });
});

test('eight refreshes with one token at both gateways at once: all get tokens, and go on at either', async () => {
  const person = createPerson(origin, gateways[0].key);
  const client = await registerRaw(origin, { resource: `${origin}/api/v1` });
  const { refresh_token: refresh } = await client.signIn(person);
  asked = [];
  const answers = await Promise.all(Array.from({ length: 8 }, () => client.refresh(refresh!)));
  expect(new Set(asked).size).toBe(2);
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 200));
  for (const { body } of answers) {
    for (const { origin: own } of gateways) expect(await statusAt(own, body.access_token)).toBe(200);
    expect((await client.refresh(body.refresh_token!)).status).toBe(200);
  }
});

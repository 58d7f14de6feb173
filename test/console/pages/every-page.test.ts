import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, test } from 'vitest';
import { openBrowser, type TestBrowser, type Visitor } from '../../support/browser.ts';
import { MODEL, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { pageHolds } from './page-holds.ts';

// Pages that everybody sees, each with all that holds for a page.

const PAGES = [
  '/',
  '/marketplace',
  `/models/${MODEL}`,
  '/agents/journeys/assistant-for-journeys-by-train-and-ship',
  '/providers',
  '/rankings',
  '/playground',
  '/docs',
  '/docs#/Chat/createChatCompletion',
  '/sign-in',
  '/dashboard',
];

let agent: Server;
let spine: Spine;
let browser: TestBrowser;
let visitor: Visitor;
beforeAll(async () => {
  agent = createServer((_request, answer) => {
    const card = { name: 'Journeys', description: 'Books them.', version: '1', protocolVersion: '0.3.0', url: address };
    const rest = { preferredTransport: 'JSONRPC', capabilities: {}, defaultInputModes: [], defaultOutputModes: [] };
    answer.setHeader('content-type', 'application/json').end(JSON.stringify({ ...card, ...rest, skills: [] }));
  }).listen(0, '127.0.0.1');
  await once(agent, 'listening');
  const address = `http://127.0.0.1:${(agent.address() as AddressInfo).port}`;
  // The label of this price is long, and so is the name. Neither takes the room of the other.
  const toml = `${UNHURRIED}
[[agents]]
name = "journeys/assistant-for-journeys-by-train-and-ship"
display_name = "Assistant for journeys by train and ship"
provider_name = "Journeys"
endpoint = "${address}"
[agents.pricing]
per_call = 0.000125
nested_max = 0.0125`;
  [spine, browser] = await Promise.all([startSpine({ toml }), openBrowser()]);
  visitor = await browser.visit({ origin: spine.origin });
});
afterAll(async () => {
  await browser.close();
  await spine.stop();
  agent.close();
});

test.each(PAGES)('%s', async (path) => {
  await visitor.page.goto(path);
  await pageHolds(visitor);
});

import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBrowser, type TestBrowser } from '../../support/browser.ts';
import { startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';

// Names, descriptions and cards are written by strangers. On a page they are text, and nothing else.

const MARKUP = `<img src=x onerror=alert(1)><script>alert(2)</script>{{boot}}</title>`;
const MARKDOWN = `[click](javascript:alert(3)) ![pixel](https://tracker.example/p.png) [out](https://ok.example/x) **bold**`;

let spine: Spine;
let browser: TestBrowser;
let agent: Server;
beforeAll(async () => {
  agent = createServer((_request, answer) => {
    const { port } = agent.address() as AddressInfo;
    answer.setHeader('content-type', 'application/json');
    answer.end(
      JSON.stringify({
        name: MARKUP,
        description: `${MARKUP} ${MARKDOWN}`,
        version: '1',
        protocolVersion: '0.3.0',
        url: `http://127.0.0.1:${port}/`,
        preferredTransport: 'JSONRPC',
        capabilities: {},
        defaultInputModes: ['text/plain', MARKUP],
        defaultOutputModes: ['text/plain'],
        skills: [{ id: 's', name: MARKUP, description: MARKDOWN, tags: ['x'], examples: [MARKUP] }],
      }),
    );
  }).listen(0, '127.0.0.1');
  await once(agent, 'listening');
  const block = (kind: string, rest: string) => `
[[${kind}]]
name = "hostile/${kind}"
display_name = ${JSON.stringify(MARKUP)}
description = ${JSON.stringify(`${MARKUP} ${MARKDOWN}`)}
provider_name = "Hostile"
${rest}`;
  const toml = [
    UNHURRIED,
    block(
      'images',
      `[images.pricing]\ngeneration = 0.01\n[images.params]\nmodel = "x"\napi_base = "{provider}"\napi_key = "k"`,
    ),
    block(
      'agents',
      `endpoint = "http://127.0.0.1:${(agent.address() as AddressInfo).port}"
[agents.pricing]
per_call = 0.01`,
    ),
  ].join('\n');
  [spine, browser] = await Promise.all([startSpine({ toml }), openBrowser()]);
});
afterAll(async () => {
  await browser.close();
  await spine.stop();
  agent.close();
});

test.each(['/marketplace', '/images/hostile/images', '/agents/hostile/agents'])('%s', async (path) => {
  const visitor = await browser.visit({ origin: spine.origin });
  const { page } = visitor;
  const elsewhere: string[] = [];
  page.on('request', (request) => {
    if (!request.url().startsWith(spine.origin)) elsewhere.push(request.url());
  });
  page.on('dialog', (dialog) => elsewhere.push(dialog.message()));
  await page.goto(path);
  await page.getByText('<img src=x onerror=alert(1)>').first().waitFor();
  await visitor.settled();
  expect(await page.locator('main img, main script, main iframe').count()).toBe(0);
  expect(await page.locator('a[href^="javascript:"]').count()).toBe(0);
  for (const link of await page.locator('a[target=_blank]').all()) {
    expect(await link.getAttribute('rel')).toBe('noopener noreferrer nofollow ugc');
    expect(await link.getAttribute('href')).toMatch(/^https:\/\//);
  }
  expect(await visitor.axe()).toEqual([]);
  expect(await visitor.overflow()).toBe(0);
  expect(elsewhere).toEqual([]);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test('the page of the provider, in the dark and on a phone', async () => {
  const visitor = await browser.visit({ origin: spine.origin, theme: 'dark', width: 390 });
  const { page } = visitor;
  await page.goto('/providers');
  await page.getByRole('link', { name: 'Hostile', exact: true }).first().click();
  await page.getByRole('heading', { level: 1, name: 'Hostile' }).waitFor();
  await page.getByText('<img src=x onerror=alert(1)>').first().waitFor();
  expect(await visitor.axe()).toEqual([]);
  expect(await visitor.overflow()).toBe(0);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test('the document of a page has such a name as text, in its title and its facts', async () => {
  const text = await (await fetch(`${spine.origin}/agents/hostile/agents`)).text();
  expect(text).not.toContain('<img src=x');
  expect(text.match(/<\/title>/g)).toHaveLength(1);
  expect(text).toContain('&lt;img src=x onerror=alert(1)&gt;');
  expect(JSON.parse(/id="boot">([^<]*)</.exec(text)![1]!)).toMatchObject({ mode: 'production' });
});

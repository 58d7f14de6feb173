import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startPeerProvider, type PeerProvider } from '../peers/peer-provider.ts';
import { atThisLoad } from '../support/at-this-load.ts';
import { findFreePort } from '../support/free-port.ts';
import { startPrometheus, type Prometheus } from '../support/prometheus.ts';
import { ask, MODEL, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

/*
 * Each panel of the dashboard, evaluated by a real Prometheus that scrapes a gateway with calls as prometheus.yml says.
 */

const DEPLOY = resolve(import.meta.dirname, '../../deploy');
/** Grafana puts in four scrapes at the least, at the 15 s of prometheus.yml. */
const VARIABLES = { $__rate_interval: '1m' };

/** What has to be seen: an exact figure, or one above 0. */
type Seen = number | 'some';

/** By panel, and in it by legend. */
const FIGURES: Readonly<Record<string, Readonly<Record<string, Seen>>>> = {
  'Calls a second': { calls: 'some' },
  'Charged in 24 h': { charged: 'some' },
  'Fees in 24 h': { fees: 'some' },
  'Calls under way': { calls: 1 },
  'Locks held': { locks: 1 },
  'Server errors': { share: 'some' },
  'Calls by operation': { chat: 'some', execute_tool: 'some', invoke_agent: 'some', generate_content: 'some' },
  'What became of locks': { settled: 'some', released: 'some' },
  'Answers by status': { 200: 'some', 500: 'some' },
  'Time to the first token': { p50: 'some', p95: 'some' },
  'Time of a call, p95 by service': {
    [MODEL]: 'some',
    'peer/images': 'some',
    'peer/tools': 'some',
    'peer/agent': 'some',
  },
  'Tokens a second': { input: 'some', output: 'some' },
  'Charged an hour, by service': {
    [MODEL]: 'some',
    'peer/images': 'some',
    'peer/tools': 'some',
    'peer/agent': 'some',
  },
  'Cost that could not be charged': { shortfall: 0 },
  'Commits of the ledger, p99': { '{instance}': 'some' },
  'Operations in a commit, mean': { '{instance}': 'some' },
  'Failed attempts by provider': { 'Test (provider)': 'some' },
  'Time of an attempt, p95 by provider': { Test: 'some', Peer: 'some' },
  'Oldest wait for a first byte, by provider': { Test: 'some' },
  Tunnels: { proxies: 0, 'calls through them': 0 },
  'Tasks that go on': { tasks: 0 },
  MCP: { sessions: 0, listening: 0, 'calls that wait for a client': 0 },
};
/** Panels that show nothing here, and why. */
const EMPTY: Readonly<Record<string, string>> = {
  'Treasury: held less booked': 'this gateway has no chain, so no treasury',
  'Oldest deposit and withdrawal': 'this gateway has no chain, so nothing waits for one',
};

interface Panel {
  readonly title: string;
  readonly type: string;
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}
const { panels } = JSON.parse(readFileSync(join(DEPLOY, 'grafana/tollgate.json'), 'utf8')) as { panels: Panel[] };
const drawn = panels.filter(({ type }) => type !== 'row');

const services = ({ modelUrl, toolUrl, agentUrl }: PeerProvider) => `
${UNHURRIED}
[billing]
fee_bps = 250
[upstream]
cooldown_ms = 1
[[images]]
name = "peer/images"
display_name = "Peer: Images"
provider_name = "Peer"
[images.pricing]
generation = 0.001
[images.params]
model = "peer"
body = "json"
api_base = "${modelUrl}"
[[tools]]
name = "peer/tools"
display_name = "Peer: Tools"
provider_name = "Peer"
endpoint = "${toolUrl}"
[tools.pricing]
per_call = 0.001
[[agents]]
name = "peer/agent"
display_name = "Peer: Agent"
provider_name = "Peer"
endpoint = "${agentUrl}"
[agents.pricing]
per_call = 0.001
`;

let peer: PeerProvider;
let spine: Spine;
let prometheus: Prometheus;
const METRICS_KEY = 'key-of-prometheus-0123456789abcdef';
const secrets = mkdtempSync(join(tmpdir(), 'tollgate-dashboard-'));

beforeAll(async () => {
  peer = await startPeerProvider();
  const port = await findFreePort();
  const config = filled(readFileSync(join(DEPLOY, 'prometheus/prometheus.yml'), 'utf8'), {
    '/run/secrets/tollgate_metrics_key': join(secrets, 'metrics-key'),
    'alerts.yml': join(DEPLOY, 'prometheus/alerts.yml'),
    "'gateway-1:8402', 'gateway-2:8402'": `'127.0.0.1:${port}'`,
    'scrape_interval: 15s': 'scrape_interval: 500ms',
  });
  // Together: Prometheus takes five seconds from its start to its first scrape.
  writeFileSync(join(secrets, 'metrics-key'), METRICS_KEY);
  const env = { TOLLGATE_METRICS_KEY: METRICS_KEY };
  [spine, prometheus] = await Promise.all([startSpine({ toml: services(peer), port, env }), startPrometheus(config)]);
});
afterAll(async () => {
  await prometheus.stop();
  await spine.stop();
  await peer.close();
  rmSync(secrets, { recursive: true });
});

it('knows each panel', () => {
  expect(drawn.map(({ title }) => title).toSorted()).toEqual(
    [...Object.keys(FIGURES), ...Object.keys(EMPTY)].toSorted(),
  );
});

it('shows what was called in each panel', async () => {
  const stalled = Promise.withResolvers<void>();
  spine.provider.instruct({ stallAt: 0, stallUntil: stalled.promise });
  const underWay = spine.post('/chat/completions', ask('stays'));
  try {
    await expect.poll(() => spine.provider.log.length, { interval: 5 }).toBe(1);
    const until = performance.now() + atThisLoad(20_000);
    let missing: string[] = [];
    // A rate is of two scrapes between which something was counted: calls go on, as they do at a gateway.
    for (let round = 1; round === 1 || (missing.length > 0 && performance.now() < until); round += 1) {
      const calls = await callEverything();
      await scraped(round * calls);
      missing = (await Promise.all(drawn.map(missingIn))).flat();
    }
    expect(missing).toEqual([]);
    // Where nothing failed and no fee is taken, they say so.
    const none = { 'status=~"5.."': 'status="999"', tollgate_fees_micro_usd_total: 'tollgate_no_such_total' };
    for (const title of ['Server errors', 'Fees in 24 h'])
      expect([...(await figuresOf(title, none))]).toEqual([[expect.any(String), 0]]);
    // The counters themselves, because Prometheus extrapolates the increase of each series by itself.
    const counters = { 'increase(': '(', '[24h]': '' };
    const [charged, fees] = await Promise.all(
      ['Charged in 24 h', 'Fees in 24 h'].map((title) => figuresOf(title, counters)),
    );
    expect(fees!.get('fees')! / charged!.get('charged')!, 'the fee is 2.5 %').toBeCloseTo(0.025, 3);
  } finally {
    stalled.resolve();
    await underWay;
  }
  expect(await spine.faults()).toEqual([]);
});

/** One call of each primitive and one that fails. Resolves with their count. */
async function callEverything(): Promise<number> {
  const rpc = async (method: string, params: object) => {
    const response = await spine.post('/rpc', { jsonrpc: '2.0', id: 1, method, params });
    expect(await response.json(), method).toHaveProperty('result');
  };
  expect((await spine.post('/chat/completions', ask('hello'))).status).toBe(200);
  expect((await spine.post('/chat/completions', ask('!status:500'))).status).toBe(500);
  await rpc('images/generate', { model: 'peer/images', prompt: 'complete' });
  await rpc('tools/call', { service: 'peer/tools', name: 'do', arguments: { text: 'complete' } });
  const message = { kind: 'message', messageId: crypto.randomUUID(), role: 'user' };
  await rpc('message/send', {
    agent: 'peer/agent',
    message: { ...message, parts: [{ kind: 'text', text: 'complete' }] },
  });
  return 5;
}

/** Resolves when Prometheus has seen that so many calls are over. */
async function scraped(calls: number): Promise<void> {
  const seen = async () => (await prometheus.query('sum(tollgate_calls_total)'))[0]?.value ?? 0;
  await expect.poll(seen, { interval: 20 }).toBeGreaterThanOrEqual(calls);
}

/** What a panel shows, by the legends. */
async function figuresOf(title: string, besides: Readonly<Record<string, string>> = {}): Promise<Map<string, number>> {
  const shown = new Map<string, number>();
  for (const { expr, legendFormat } of drawn.find((panel) => panel.title === title)!.targets ?? []) {
    const query = filled(expr, { ...VARIABLES, ...besides }, false);
    expect(query).not.toContain('$');
    for (const { labels, value } of await prometheus.query(query)) {
      const legend = legendFormat.replaceAll(/\{\{(\w+)\}\}/g, (_, label: string) => labels[label] ?? `no ${label}`);
      expect([...shown.keys()], `${title} has each legend once`).not.toContain(legend);
      shown.set(legend, value);
    }
  }
  return shown;
}

/** What is not there yet of what a panel has to show, and what it should not show. */
async function missingIn({ title }: Panel): Promise<string[]> {
  const shown = await figuresOf(title);
  const wanted = Object.entries(FIGURES[title] ?? {}).map(
    ([legend, seen]) => [legend === '{instance}' ? new URL(spine.origin).host : legend, seen] as const,
  );
  const legends = new Set(wanted.map(([legend]) => legend));
  const lacking = wanted.filter(([legend, seen]) => {
    const value = shown.get(legend) ?? NaN;
    return seen === 'some' ? !(value > 0 && value < Infinity) : value !== seen;
  });
  // What was counted before the first scrape alone is a series that stands at 0.
  const besides = [...shown].filter(([legend, value]) => !legends.has(legend) && (value !== 0 || title in EMPTY));
  return [
    ...lacking.map(([legend, seen]) => `${title}: ${legend} is ${shown.get(legend)}, not ${seen}`),
    ...besides.map(([legend, value]) => `${title}: ${legend} is ${value}, and nobody called that`),
  ];
}

/** `text` with each of the keys, which it has, replaced. */
function filled(text: string, values: Readonly<Record<string, string>>, each = true): string {
  for (const [from, to] of Object.entries(values)) {
    if (each) expect(text).toContain(from);
    text = text.replaceAll(from, to);
  }
  return text;
}

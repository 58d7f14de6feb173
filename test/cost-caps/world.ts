import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { startPeerProvider, type PeerProvider } from '../peers/peer-provider.ts';
import { startSpine, UNHURRIED, type Spine, type SpineOptions } from '../support/spine.ts';
import { SERVICE, type CapDoor, type Named } from './routes.ts';

/**
 * What a call of the model, the tool or the agent costs at most, in USD: each is the same at two providers but for
 * its price.
 */
export const CHEAP = '0.005';
export const DEAR = '0.01';

export interface CapWorld {
  readonly spine: Spine;
  readonly provider: PeerProvider;
  /** Asks a route, and tells what it said and what it cost in micro-USD. */
  ask(
    door: CapDoor,
    named: Named,
    by?: { readonly stranger: true },
  ): Promise<{ readonly status: number; readonly text: string; readonly cost: bigint }>;
}

const services = ({ modelUrl, toolUrl, agentUrl }: PeerProvider, name: string, usd: string) => {
  const rest = `name = "${SERVICE}"\ndisplay_name = "${name}: All"\nprovider_name = "${name}"\n`;
  const capped = `per_call = ${usd}\n`;
  return `
[[models]]
${rest}context_length = 100000
max_output_tokens = 5000
[models.pricing]
prompt = 0
completion = ${Number(usd) * 200}
[models.params]
model = "peer"
api_base = "${modelUrl}"
api_key = "k"

[[tools]]
${rest}endpoint = "${toolUrl}"
[tools.pricing]
${capped}
[[agents]]
${rest}endpoint = "${agentUrl}"
[agents.pricing]
${capped}`;
};

export interface CapWorldOptions extends Pick<SpineOptions, 'credit' | 'payments'> {
  /** USD that a call costs at most, of each provider. */
  readonly prices?: Readonly<Record<string, string>>;
}

/**
 * A gateway with the same services of several providers for what calls this. The books have to be in order after
 * each test.
 */
export function useCapWorld({ prices = { Dear: DEAR, Cheap: CHEAP }, ...options }: CapWorldOptions = {}): CapWorld {
  let spine: Spine;
  let provider: PeerProvider;
  const sessions = new Map<string, Promise<string>>();

  beforeAll(async () => {
    provider = await startPeerProvider();
    const blocks = Object.entries(prices).map(([name, usd]) => services(provider, name, usd));
    spine = await startSpine({ ...options, toml: UNHURRIED + blocks.join('') });
  });
  afterAll(async () => {
    await spine.stop();
    await provider.close();
  });
  afterEach(async () => {
    expect(await spine.faults()).toEqual([]);
  });

  const post = async (
    path: string,
    body: unknown,
    headers: Readonly<Record<string, string>>,
    by?: { readonly stranger: true },
  ) =>
    fetch(spine.origin + path, {
      method: 'POST',
      headers: {
        ...(by?.stranger ? {} : { authorization: `Bearer ${spine.key}` }),
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...headers,
      },
      body: JSON.stringify(body),
    });

  async function open(path: string): Promise<string> {
    const params = { protocolVersion: '2025-03-26', capabilities: {}, clientInfo: { name: 't', version: '1' } };
    const opened = await post(path, { jsonrpc: '2.0', id: 0, method: 'initialize', params }, {});
    expect(opened.status, await opened.text()).toBe(200);
    const id = opened.headers.get('mcp-session-id')!;
    await post(path, { jsonrpc: '2.0', method: 'notifications/initialized' }, { 'mcp-session-id': id });
    return id;
  }

  function sessionAt(path: string): Promise<string> {
    const opened = sessions.get(path) ?? open(path);
    sessions.set(path, opened);
    return opened;
  }

  return {
    get spine() {
      return spine;
    },
    get provider() {
      return provider;
    },
    async ask(door, named, by) {
      const session = door.session ? { 'mcp-session-id': await sessionAt(door.path) } : {};
      const before = await spine.balance();
      const headers = {
        ...door.headers,
        ...session,
        ...(named.header === undefined ? {} : { 'x-max-cost': named.header }),
      };
      const response = await post(door.path, door.body(named), headers, by);
      const text = await response.text();
      await spine.quiet();
      return { status: response.status, text, cost: before.available - (await spine.balance()).available };
    },
  };
}

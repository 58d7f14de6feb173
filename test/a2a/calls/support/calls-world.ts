import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import {
  startAgentSpine,
  type AgentOffer,
  type AgentOptions,
  type AgentSpine,
  type ServedAgent,
} from '../../../support/a2a-agent/index.ts';
import type { SpineOptions } from '../../../support/spine.ts';
import { createTalk, type Reply, type ProviderStream } from '../../contract/client-calls.ts';
import type { Json } from '../../contract/shapes.ts';

/** The ways that a client may speak. */
export const WIRES = [
  { name: 'JSON-RPC 1.0', version: '1.0', binding: 'JSONRPC', below: '' },
  { name: 'JSON-RPC 0.3', version: '0.3', binding: 'JSONRPC', below: '' },
  { name: 'HTTP+JSON 1.0', version: '1.0', binding: 'HTTP+JSON', below: '' },
  { name: 'HTTP+JSON 0.3', version: '0.3', binding: 'HTTP+JSON', below: '/v1' },
] as const;
export type Wire = (typeof WIRES)[number];
export const [RPC, LEGACY_RPC, REST, LEGACY_REST] = WIRES;

/** What a message costs at agents that say nothing else, in micro-USD. */
export const MESSAGE_PRICE = 1_000n;

const LOOK_SOON = { name: 'test/look-soon', text: 'UPDATE tasks SET next_look_at = 0 WHERE ended_at IS NULL' };

export interface CallsWorld {
  readonly world: AgentSpine;
  /** An agent of a provider of its own. */
  serve(options?: AgentOptions, offer?: Partial<AgentOffer>): Promise<ServedAgent>;
  /** A client of an agent's address; `key` is that of the account with money where none is given. */
  talk(url: string, wire?: Wire, key?: string): ProviderStream;
  /** What the account has less after `work` than before, once no call holds anything. */
  spent(work: () => Promise<unknown>): Promise<bigint>;
  /** What is locked of the account. */
  locked(): Promise<bigint>;
  /** The gateway's next look at each task is due at once, and not seconds later. */
  pollSoon(): Promise<void>;
}

/** A gateway for the file that calls this. After every test nothing is locked and the books are in order. */
export function useCallsWorld(toml = '', options: Omit<SpineOptions, 'toml'> = {}): CallsWorld {
  let world: AgentSpine | undefined;
  let served = 0;
  beforeAll(async () => {
    world = await startAgentSpine(toml, options);
  });
  afterEach(async () => {
    expect(await world!.spine.faults()).toEqual([]);
    expect((await world!.spine.balance()).locked).toBe(0n);
  });
  afterAll(() => world?.close());
  return {
    get world() {
      return world!;
    },
    serve(agent, offer) {
      served += 1;
      return world!.serve(agent, { name: `fixture-${served}/agent`, provider: `Fixture ${served}`, ...offer });
    },
    talk: (url, { version, binding, below } = RPC, key = world!.spine.key) =>
      createTalk({ url: `${url}${below}`, headers: { authorization: `Bearer ${key}` } }, version, binding),
    async spent(work) {
      const { spine } = world!;
      const before = await spine.balance();
      await work();
      await spine.quiet();
      return before.available - (await spine.balance()).available;
    },
    locked: async () => (await world!.spine.balance()).locked,
    pollSoon: async () => void (await world!.spine.app.database.query(LOOK_SOON)),
  };
}

/** What an error answer says, whatever the wire: the status, A2A's code and the words. null where it is none. */
export function refusalOf({
  status,
  error,
  json,
}: Reply): { readonly status: number; readonly code: number | null; readonly message: string } | null {
  if (error) return { status, code: error.code, message: error.message };
  const bare = json as Json | undefined;
  // 0.3 has the error of JSON-RPC on HTTP+JSON, with nothing around it.
  return bare && typeof bare['code'] === 'number'
    ? { status, code: bare['code'], message: String(bare['message']) }
    : null;
}

/** The task, message or update that an answer holds, without what the version wraps it in. */
export function heldBy({ json }: Reply): Json {
  const top = json as Json;
  const result = ('jsonrpc' in top ? top['result'] : top) as Json;
  return (result['task'] ?? result['message'] ?? result['msg'] ?? result) as Json;
}

/** What an answer says that it cost, in USD; undefined where it does not. */
export const costOf = (reply: Reply): unknown =>
  ((heldBy(reply)['metadata'] as Json | undefined)?.['tollgate/generation'] as Json | undefined)?.['cost'];

import type { Client } from '@a2a-js/sdk/client';
import { afterAll, beforeAll, expect } from 'vitest';
import {
  startAgentSpine,
  type Agent,
  type AgentSpine,
  type AgentVersion,
  type ServedAgent,
} from '../../support/a2a-agent/index.ts';
import { CLIENT_KINDS, connect, type ClientKind } from './sdk-client.ts';

/** Each client of the SDK with an agent of each age: what it is called, and how it is come by. */
export const PAIRS = (['1.0', '0.3', 'both'] as const).flatMap((speaks) =>
  CLIENT_KINDS.map((kind) => ({ name: `a client of ${kind} and an agent of ${speaks}`, kind, speaks })),
);

export interface Pair {
  readonly client: Client;
  readonly agent: Agent;
  readonly served: ServedAgent;
}

export interface ClientWorld {
  readonly world: AgentSpine;
  meet(kind: ClientKind, speaks: AgentVersion): Promise<Pair>;
}

/** A gateway for the file that calls this, with an agent of each age. The books have to be in order at its end. */
export function useClientWorld(): ClientWorld {
  let world: AgentSpine | undefined;
  const agents = new Map<AgentVersion, ServedAgent>();
  beforeAll(async () => {
    world = await startAgentSpine();
    for (const version of ['1.0', '0.3', 'both'] as const) {
      agents.set(version, await world.serve({ version }));
    }
  });
  afterAll(async () => {
    if (!world) return;
    try {
      expect(await world.spine.faults()).toEqual([]);
    } finally {
      await world.close();
    }
  });
  return {
    get world() {
      return world!;
    },
    async meet(kind, speaks) {
      const served = agents.get(speaks)!;
      return { client: await connect(kind, served.url, world!.spine.key), agent: served.agent, served };
    },
  };
}
